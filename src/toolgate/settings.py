"""The only reader of toolgate.toml, environment variables and flags.

A setting has one name in three spellings: `limits.seconds` in the file,
`TOOLGATE_LIMITS__SECONDS` in the environment, and a flag where a command has one.
Flags win over the environment, the environment over the file.
"""

import difflib
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from toolgate.sections import Section, Settings

FILE_NAME = "toolgate.toml"
PREFIX = "TOOLGATE_"


class BadSettings(ValueError):
    """A setting is unknown or wrong; the message names it and what to write instead."""


BORROWED = {
    "MCP_ENABLE_WRITES": "appdata.writes",
    "GOOGLE_APPLICATION_CREDENTIALS": "google.credentials_file",
    "FIREBASE_SERVICE_ACCOUNT_KEY": "google.service_account",
    "FIRESTORE_EMULATOR_HOST": "google.emulator_host",
    "BACKEND_MANAGER_KEY": "admin_key",
    "DEFAULT_PROJECT_ID": "content.default_project",
}
"""Variables that other documents name; they mean what they mean there."""

OWN = {
    "TOOLGATE_ADMIN_KEY": "admin_key",
    "TOOLGATE_DATA": "data",
    "TOOLGATE_CONFIG": None,
    "TOOLGATE_KEY": None,
    "TOOLGATE_HANDED_DOWN": None,
}


def load(
    *,
    flags: Mapping[str, Any] | None = None,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Read the settings from file, environment and flags (`{"server.port": 80}`)."""
    environment = os.environ if environment is None else environment
    tree: dict[str, Any] = _read_file(file, environment)
    for name, value in _from_environment(environment).items():
        _put(tree, name, value)
    for name, value in (flags or {}).items():
        if value is not None:
            _put(tree, name, value)
    return _validated(tree)


def _read_file(file: Path | None, environment: Mapping[str, str]) -> dict[str, Any]:
    given = environment.get("TOOLGATE_CONFIG")
    named = file or (Path(given) if given else None)
    path = named or Path(FILE_NAME)
    if not path.is_file():
        if named:
            raise BadSettings(f"{path} is not there. Run `toolgate init` to write one.")
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise BadSettings(f"{path} is not valid TOML: {problem}.") from problem


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for variable, name in BORROWED.items():
        if environment.get(variable):
            found[name] = environment[variable]
    for variable, value in environment.items():
        if not variable.startswith(PREFIX):
            continue
        name = OWN.get(variable, variable.removeprefix(PREFIX).lower().replace("__", "."))
        if name is not None and value:
            found[name] = value
    return found


def _put(tree: dict[str, Any], name: str, value: Any) -> None:
    section, dot, key = name.partition(".")
    if not dot:
        tree[name] = value
        return
    inner: Any = tree.setdefault(section, {})
    if not isinstance(inner, dict):
        raise BadSettings(f"Setting {section} is a section; set one of its keys.")
    _put(cast("dict[str, Any]", inner), key, value)


def _validated(tree: dict[str, Any]) -> Settings:
    try:
        return Settings.model_validate(tree)
    except ValidationError as invalid:
        raise BadSettings(" ".join(_told(dict(one)) for one in invalid.errors())) from None


def _told(error: dict[str, Any]) -> str:
    name = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        if isinstance(error["input"], dict) and error["input"]:
            name += f".{next(iter(cast('dict[str, Any]', error['input'])))}"
        near = difflib.get_close_matches(name, names(), n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]}?" if near else " See docs/reference/settings.md."
        return f"Unknown setting {name}.{hint}"
    return f"Setting {name}: {error['msg'][0].lower()}{error['msg'][1:]}."


def names() -> list[str]:
    """Every setting's full name."""
    return [name for name, _ in described()]


def described() -> list[tuple[str, Any]]:
    """Every setting's full name with its field (default, description)."""
    found: list[tuple[str, Any]] = []
    for name, field in Settings.model_fields.items():
        inner = field.annotation
        if isinstance(inner, type) and issubclass(inner, Section):
            found += [(f"{name}.{key}", one) for key, one in inner.model_fields.items()]
        else:
            found.append((name, field))
    return found


HANDED_DOWN = "TOOLGATE_HANDED_DOWN"


def hand_down(settings: Settings) -> None:
    """Leave the settings, flags included, for worker processes started from this one."""
    os.environ[HANDED_DOWN] = settings.model_dump_json()


def handed_down() -> Settings:
    """The settings of the process that started this one."""
    return Settings.model_validate_json(os.environ[HANDED_DOWN])

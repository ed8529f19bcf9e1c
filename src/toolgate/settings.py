"""The only reader of toolgate.toml, the `.env` beside it, environment variables and flags.

A setting has one name in three spellings: `limits.seconds` in the file,
`TOOLGATE_LIMITS__SECONDS` in the environment, and a flag where a command has one.
Flags win over the environment, the environment over a `.env` beside the file, that over the file.

A relative path in either file starts from the file's folder, so that the same file means the same
from everywhere; one in a variable or a flag starts from the working folder.
"""

import difflib
import json
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeGuard, cast, get_args

from pydantic import ValidationError, create_model

from toolgate import env_file, packs
from toolgate.gate.offer import AnyOffer
from toolgate.ports import users
from toolgate.sections import Settings
from toolgate.setting_errors import wrong_value
from toolgate.setting_types import BadSettings, Section, split_paths
from toolgate.storage_sections import DocumentSettings, place

FILE_NAME = "toolgate.toml"
PREFIX = "TOOLGATE_"
ENV_FILE = ".env"
MAX_ENV_BYTES = 1024 * 1024
SQLITE_FILE = "sqlite:///"


OWN = {
    "TOOLGATE_ADMIN_KEY": "admin_key",
    "TOOLGATE_DATA": "data",
    "TOOLGATE_CONFIG": None,
    "TOOLGATE_KEY": None,
    "TOOLGATE_HANDED_DOWN": None,
}


def read_settings(
    *,
    flags: Mapping[str, Any] | None = None,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Read the settings from file, environment and flags (`{"server.port": 80}`)."""
    environment = os.environ if environment is None else environment
    flag_values = {name: value for name, value in (flags or {}).items() if value is not None}
    used = file_used(file, environment)
    # Which packs there are decides which settings there are.
    first = _tree(Settings, used, environment, flag_values).get("packs", {})
    offers = packs.offers(_validate(Settings, {"packs": first}).packs.enabled)
    model = model_of(offers)
    tree = _tree(model, used, environment, flag_values)
    _drop_disabled_packs(model, tree, enabled=[offer.pack.name for offer in offers])
    return _validate(model, tree)


def model_of(offers: Sequence[AnyOffer]) -> type[Settings]:
    """The settings there are with these packs; the same type for the same packs."""
    own = [(one.pack.name, one.settings) for one in offers if one.settings]
    further = [section for one in offers for section in one.sections.items()]
    return _model((*own, *further), tuple(one.pack.name for one in offers if one.documents))


@cache
def _model(
    sections: tuple[tuple[str, type[Section]], ...], keeping_documents: tuple[str, ...]
) -> type[Settings]:
    fields: dict[str, Any] = {name: (section, section()) for name, section in sections}
    documents = _documents_of(keeping_documents)
    fields["documents"] = (documents, documents())
    return create_model("Settings", __base__=Settings, __doc__=Settings.__doc__, **fields)


def _documents_of(packs_keeping_some: tuple[str, ...]) -> type[DocumentSettings]:
    """Where the documents of each pack are; those of users are read without their pack too."""
    places: dict[str, Any] = {
        name: (str | None, place(f"The same for pack `{name}` alone; if unset, `documents.url`."))
        for name in dict.fromkeys((*packs_keeping_some, users.NAMESPACE))
    }
    return create_model(
        "Documents", __base__=DocumentSettings, __doc__=DocumentSettings.__doc__, **places
    )


def every_setting() -> type[Settings]:
    """The settings there are with all the packs that ship."""
    return model_of(packs.offers(packs.SHIPPED))


def _tree(
    model: type[Settings],
    file: Path | None,
    environment: Mapping[str, str],
    flags: Mapping[str, Any],
) -> dict[str, Any]:
    tree: dict[str, Any] = _read_file(model, file) if file else {}
    for name, value in {**_from_environment(model, environment), **flags}.items():
        _put(tree, name, value)
    return tree


def file_used(
    file: Path | None = None, environment: Mapping[str, str] | None = None
) -> Path | None:
    """The settings file that counts: the named one, else the usual one if it is here."""
    environment = os.environ if environment is None else environment
    variable = environment.get("TOOLGATE_CONFIG")
    chosen = file or (Path(variable) if variable else None)
    path = chosen or Path(FILE_NAME)
    if path.is_file():
        return path
    if chosen:
        raise BadSettings(f"{path} is not there. Run `toolgate init --config {path}` to write it.")
    return None


def _read_file(model: type[Settings], path: Path) -> dict[str, Any]:
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise BadSettings(f"{path} is not valid TOML: {problem}.") from problem
    beside = _read_env_file(model, path.parent / ENV_FILE)
    for name, value in _from_environment(model, beside).items():
        _put(tree, name, value)
    return _from_folder(model, path.parent, tree)


def _read_env_file(model: type[Settings], path: Path) -> Mapping[str, str]:
    """The variables of a `.env`; those that are none of ours are nobody's business here."""
    if not path.is_file():
        return {}
    try:
        if path.stat().st_size > MAX_ENV_BYTES:
            raise BadSettings(f"{path} is longer than {MAX_ENV_BYTES:,} bytes.")
        variables, rest = env_file.parse(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as problem:
        raise BadSettings(f"{path} cannot be read: {problem}.") from problem
    for number, line in rest:
        name = re.split(r"\W", line.removeprefix("export").strip(), maxsplit=1)[0]
        if name in borrowed(model) or name.startswith(PREFIX):
            # Its value may be a secret, so the line is not shown.
            raise BadSettings(f"{path}:{number}: write {name}=value on one line, or in quotes.")
    return variables


def files_with_secrets(model: type[Settings], file: Path | None = None) -> list[Path]:
    """The settings file and the `.env` beside it, each only where it holds a secret."""
    used = file_used(file)
    if used is None:
        return []
    written = tomllib.loads(used.read_text(encoding="utf-8"))
    beside: dict[str, Any] = {}
    variables = _read_env_file(model, used.parent / ENV_FILE)
    for name, value in _from_environment(model, variables).items():
        _put(beside, name, value)
    both = ((used, written), (used.parent / ENV_FILE, beside))
    return [path for path, tree in both if _holds_secret(model, tree)]


def _holds_secret(model: type[Settings], tree: dict[str, Any]) -> bool:
    """Whether a setting is there that is never shown; an address only if it has a password."""
    for name in (name for name, field in setting_fields(model) if not field.repr):
        section, dot, key = name.rpartition(".")
        value = (tree.get(section, {}) if dot else tree).get(key)
        if value and ("://" not in value or re.search(r"://[^/?#]*@|[?&]password=", value)):
            return True
    return False


def _from_folder(model: type[Settings], folder: Path, tree: dict[str, Any]) -> dict[str, Any]:
    """The settings of a file with every path in them seen from its folder, the data's too."""
    for name, field in setting_fields(model):
        section, dot, key = name.rpartition(".")
        inner = tree.get(section, {}) if dot else tree
        if not isinstance(inner, dict):
            continue  # refused with the rest, when the settings are validated
        values = cast("dict[str, Any]", inner)
        value = values.get(key, field.default)
        if _is_paths(field):
            values[key] = _paths_from(folder, value)
        elif _is_path(field) and isinstance(value, str | Path):
            values[key] = folder / value
        elif name == "database.url" and isinstance(values.get(key), str):
            values[key] = _file_from(folder, values[key])
    return tree


def _is_path(field: Any) -> bool:
    return Path in (field.annotation, *get_args(field.annotation))


def _is_paths(field: Any) -> bool:
    return field.annotation == tuple[Path, ...]


def _paths_from(folder: Path, value: Any) -> Any:
    paths = split_paths(value)
    if not isinstance(paths, list | tuple):
        return value  # refused with the rest, when the settings are validated
    every = cast("list[Any]", paths)
    return [folder / one if isinstance(one, str | Path) else one for one in every]


def _file_from(folder: Path, url: str) -> str:
    """The address of an embedded database, seen from a folder; `sqlite://` alone is no file."""
    start, rest = url[: len(SQLITE_FILE)], url[len(SQLITE_FILE) :]
    if start != SQLITE_FILE or not rest or rest.startswith(":"):
        return url
    return f"{SQLITE_FILE}{folder / rest}"


def _from_environment(model: type[Settings], environment: Mapping[str, str]) -> dict[str, str]:
    return {
        name: environment[variable]
        for variable, name in variables_in_use(model, environment).items()
    }


def borrowed(model: type[Settings]) -> dict[str, str]:
    """Variables that other documents name, each with the setting that it sets here."""
    names = dict(model.borrowed)
    for section, field in model.model_fields.items():
        if _is_section(field.annotation):
            keys = field.annotation.borrowed
            names |= {variable: f"{section}.{key}" for variable, key in keys.items()}
    return names


def variables_in_use(
    model: type[Settings], environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables that set something, each with the setting's name; later ones win."""
    environment = os.environ if environment is None else environment
    names = {one: name for one, name in borrowed(model).items() if environment.get(one)}
    for variable, value in environment.items():
        if not variable.startswith(PREFIX):
            continue
        name = OWN.get(variable, variable.removeprefix(PREFIX).lower().replace("__", "."))
        if name is not None and value:
            names[variable] = name
    return names


def admin_key_of_environment() -> str | None:
    """The admin key that a variable of this process sets, whatever the files say."""
    return _from_environment(Settings, os.environ).get("admin_key")


def _put(tree: dict[str, Any], name: str, value: Any) -> None:
    section, dot, key = name.partition(".")
    if not dot:
        tree[name] = value
        return
    inner: Any = tree.setdefault(section, {})
    if not isinstance(inner, dict):
        raise BadSettings(f"Setting {section} is a section; set one of its keys.")
    _put(cast("dict[str, Any]", inner), key, value)


def _drop_disabled_packs(
    model: type[Settings], tree: dict[str, Any], enabled: Sequence[str]
) -> None:
    """Pass over the settings of packs that are not in use."""
    documents = tree.get("documents")
    places = cast("dict[str, Any]", documents) if isinstance(documents, dict) else {}
    known = model.model_fields["documents"].default.__class__.model_fields
    unknown = [
        (tree, {*tree}.difference(model.model_fields)),
        (places, {*places}.difference(known)),
    ]
    if any(names for _, names in unknown):  # to ask every installed package takes a while
        disabled = {*packs.known_names(), *_sections_of_shipped()}.difference(enabled)
        for values, names in unknown:
            for name in names.intersection(disabled):
                del values[name]


def _sections_of_shipped() -> list[str]:
    """The further sections of every pack of toolgate's own."""
    return [name for offer in packs.offers(packs.SHIPPED) for name in offer.sections]


def _validate(model: type[Settings], tree: dict[str, Any]) -> Settings:
    try:
        return model.model_validate(tree)
    except ValidationError as invalid:
        problems = [_problem_text(model, dict(one)) for one in invalid.errors()]
        raise BadSettings(" ".join(dict.fromkeys(problems))) from None


def _problem_text(model: type[Settings], error: dict[str, Any]) -> str:
    name = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        if isinstance(error["input"], dict) and error["input"]:
            name += f".{next(iter(cast('dict[str, Any]', error['input'])))}"
        near = difflib.get_close_matches(name, setting_names(model), n=1, cutoff=0.5)
        hint = f" Did you mean {near[0]}?" if near else " See docs/reference/settings.md."
        return f"Unknown setting {name}.{hint}"
    return _wrong_value_text(model, name, error["input"])


def _wrong_value_text(model: type[Settings], name: str, value: Any) -> str:
    """A value that does not fit: of a setting, of an item in its list, or of a whole section."""
    fields = dict(setting_fields(model))
    if name in model.model_fields and name not in fields:
        return f"Setting {name} is a section; set one of its keys."
    setting = next(one for one in fields if f"{name}.".startswith(f"{one}."))
    return wrong_value(
        setting, fields[setting], name.removeprefix(setting).removeprefix("."), value
    )


def setting_names(model: type[Settings]) -> list[str]:
    """Every setting's full name."""
    return [name for name, _ in setting_fields(model)]


def setting_fields(model: type[Settings]) -> list[tuple[str, Any]]:
    """Every setting's full name with its field (default, description)."""
    fields: list[tuple[str, Any]] = []
    for name, field in model.model_fields.items():
        inner = field.annotation
        if _is_section(inner):
            fields += [(f"{name}.{key}", one) for key, one in inner.model_fields.items()]
        else:
            fields.append((name, field))
    return fields


def _is_section(annotation: object) -> TypeGuard[type[Section]]:
    return isinstance(annotation, type) and issubclass(annotation, Section)


HANDED_DOWN = "TOOLGATE_HANDED_DOWN"


def pass_to_workers(settings: Settings) -> None:
    """Leave the settings, flags included, for worker processes started from this one."""
    os.environ[HANDED_DOWN] = settings.model_dump_json()


def inherited_settings() -> Settings:
    """The settings of the process that started this one."""
    text = os.environ[HANDED_DOWN]
    enabled = json.loads(text)["packs"]["enabled"]
    return model_of(packs.offers(enabled)).model_validate_json(text)

"""The file with hooks: each a function in a Python file beside it, or a URL that is called signed.

A caller gives a name that stands in the file, and nothing else: no path is ever imported for one.
"""

import importlib.util
import inspect
import re
import tomllib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from toolgate.gate.arguments import nearest, problem_of
from toolgate.gate.principal import Principal
from toolgate.ports.documents import DocumentReader
from toolgate.setting_types import BadSettings

SETTING = "backend.hooks"
NAME = re.compile(r"[a-z0-9][a-z0-9_-]*(/[a-z0-9][a-z0-9_-]*)*", re.ASCII)
MAX_SECONDS = 50.0
FUNCTION = r"^[^/\\:]+\.py:[A-Za-z_][A-Za-z0-9_]*$"


@dataclass(frozen=True, slots=True)
class HookContext:
    """What a function is given."""

    documents: DocumentReader
    """The application's documents, to be read."""
    principal: Principal
    """Who runs it."""
    call: str
    """The id of the call: the same again where it is repeated."""


Function = Callable[[HookContext], Awaitable[Any]]


class Hook(BaseModel):
    """One hook, as the file has it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    function: Annotated[str, Field(pattern=FUNCTION)] | None = None
    url: Annotated[str, Field(pattern=r"^https?://[^\s]+$")] | None = None
    secret: Annotated[str, Field(min_length=16)] | None = None
    seconds: Annotated[float, Field(gt=0, le=MAX_SECONDS)] = 20.0

    @property
    def problem(self) -> str | None:
        """What is wrong with it as a whole."""
        if (self.function is None) == (self.url is None):
            return "it needs either a function or a url"
        if (self.secret is None) != (self.url is None):
            return "a url needs a secret, of 16 characters or more, and a function none"
        return None


@dataclass(frozen=True, slots=True)
class Hooks:
    """Those of one file."""

    by_name: Mapping[str, Hook]
    functions: Mapping[str, Function]


def read_hooks(file: Path | None) -> Hooks:
    """The hooks of a file; raises `BadSettings`, which says what is wrong with it."""
    if file is None:
        return Hooks({}, {})
    try:
        entries = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise BadSettings(f"Setting {SETTING}: {file} cannot be read, {problem}.") from None
    hooks: dict[str, Hook] = {}
    for name, entry in entries.items():
        if not NAME.fullmatch(name):
            raise _bad(file, name, "use a-z, 0-9, - and _ in its name, with / between parts")
        if isinstance(entry, dict):
            _check_keys(file, name, cast("dict[str, Any]", entry))
        try:
            hooks[name] = Hook.model_validate(entry)
        except ValidationError as invalid:
            raise _bad(file, name, problem_of(invalid)) from None
        if problem := hooks[name].problem:
            raise _bad(file, name, problem)
    functions = {
        name: _function(file, name, one.function) for name, one in hooks.items() if one.function
    }
    return Hooks(hooks, functions)


def _check_keys(file: Path, name: str, entry: Mapping[str, Any]) -> None:
    for key in entry:
        if key not in Hook.model_fields:
            near = nearest(key, Hook.model_fields)
            hint = f" Did you mean {near}?" if near else ""
            valid = ", ".join(Hook.model_fields)
            raise _bad(file, name, f"{key!r} is not known here.{hint} Valid options: {valid}")


def _function(file: Path, name: str, place: str) -> Function:
    source, _, wanted = place.partition(":")
    module = _module(file, name, file.parent / source)
    found = getattr(module, wanted, None)
    if not inspect.iscoroutinefunction(found):
        raise _bad(file, name, f"{source} has no `async def {wanted}(ctx)`")
    return found


def _module(file: Path, name: str, source: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"toolgate_hooks_{source.stem}", source)
    if spec is None or spec.loader is None:
        raise _bad(file, name, f"{source} is no Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise _bad(file, name, f"{source} cannot be run, {type(error).__name__}") from error
    return module


def _bad(file: Path, name: str, problem: str) -> BadSettings:
    return BadSettings(f"Setting {SETTING}: {file}, hook {name!r}: {problem}.")

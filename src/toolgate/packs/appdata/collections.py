"""The collections that the tools may touch, read from a file: the built-in one or a team's own.

Order matters: it is the order in which `list_collections` and error messages name them.
"""

import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import pydantic
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD, dotted_path, nearest, problem_of
from toolgate.ports.rules import broken_id_rule
from toolgate.setting_types import BadSettings

SETTING = "appdata.collections"
FIELD = '{ type = "string", description = "What it holds" }'
EXAMPLES = {
    "description": 'description = "What it holds"',
    "document_type": 'document_type = "Order"',
    "owner": 'owner = "Shop"',
    "writable": "writable = true",
    "fields": "a table [collections.NAME.fields]",
    "type": 'type = "string"',
    "required": "required = true",
}
"""What to write, by key."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a document; `type` is in TypeScript notation."""

    name: str
    type: str
    description: str
    required: bool = False

    @property
    def nullable(self) -> bool:
        """Whether its type names `null`."""
        return "null" in (one.strip() for one in self.type.split("|"))


@dataclass(frozen=True, slots=True)
class Collection:
    """A collection that the data tools may touch."""

    name: str
    description: str
    document_type: str
    owner: str
    fields: tuple[Field, ...]
    writable: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Collections:
    """Those of one file."""

    by_name: dict[str, Collection]

    @property
    def every(self) -> tuple[Collection, ...]:
        """All of them, in the order of the file."""
        return tuple(self.by_name.values())

    @property
    def writable(self) -> list[str]:
        """The names of those in which documents may be created."""
        return [one.name for one in self.every if one.writable]


def _check_name(name: str) -> str:
    if problem := broken_id_rule(name) if name else "must not be empty":
        raise PydanticCustomError(TOLD, "the name {problem}", {"problem": problem})
    return name


Name = Annotated[str, AfterValidator(_check_name)]
Text = Annotated[str, pydantic.Field(min_length=1)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class FieldTable(_Table):
    """A field as the file has it."""

    type: Text
    description: str = ""
    required: bool = False


class CollectionTable(_Table):
    """A collection as the file has it."""

    description: Text
    document_type: str = "Document"
    owner: str = "Application"
    writable: bool = False
    fields: dict[Text, FieldTable] = {}


class CollectionsFile(_Table):
    """The whole file."""

    collections: dict[Name, CollectionTable] = pydantic.Field(min_length=1)


TABLES = {1: CollectionsFile, 3: CollectionTable, 5: FieldTable}
"""Which keys there are at a depth."""


def read_file(file: Path) -> Collections:
    """The collections of a team's own file; raises `BadSettings` with what is wrong in it."""
    try:
        return parse(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        step = f"`toolgate appdata discover --file {file}` proposes one."
        problem = f"there is no such file. {step}"
    except OSError as unreadable:
        problem = f"{(unreadable.strerror or str(unreadable)).lower()}."
    except UnicodeDecodeError:
        problem = "it is not UTF-8 text. Save it as UTF-8."
    except tomllib.TOMLDecodeError as unreadable:
        problem = f"it is not valid TOML: {unreadable}."
    except ValidationError as invalid:
        problem = _first_problem(invalid)
    raise BadSettings(f"Setting {SETTING} ({file}): {problem}")


def parse(text: str) -> Collections:
    """The collections of a file's text."""
    tables = CollectionsFile.model_validate(tomllib.loads(text)).collections
    return Collections({name: _collection(name, table) for name, table in tables.items()})


def _collection(name: str, table: CollectionTable) -> Collection:
    fields = tuple(
        Field(key, one.type, one.description, one.required) for key, one in table.fields.items()
    )
    return Collection(
        name, table.description, table.document_type, table.owner, fields, table.writable
    )


def _first_problem(invalid: ValidationError) -> str:
    """The first problem: where, which rule, and what to write.

    A key that is not known comes first: it may be a missing one, misspelled.
    """
    problems = invalid.errors(include_url=False)
    first = min(problems, key=lambda one: one["type"] != "extra_forbidden")
    place = tuple(part for part in first["loc"] if part != "[key]")
    where, leaf = dotted_path(place), str(place[-1])
    if first["type"] == "extra_forbidden":
        keys = list(TABLES[len(place)].model_fields)
        near = nearest(leaf, keys)
        hint = f"Did you mean {near!r}?" if near else f"Keys: {', '.join(keys)}."
        return f"{where} is not a known key. {hint}"
    if first["type"] == TOLD:
        return f"{where}: {first['msg']}."
    return f"{problem_of(invalid)}. Write {_example(place, leaf)}."


def _example(place: tuple[Any, ...], leaf: str) -> str:
    match len(place):
        case 1 | 2:
            return 'a table [collections.NAME] with description = "What it holds"'
        case 4:
            return f"{leaf} = {FIELD}"
        case _:
            return EXAMPLES[leaf]


BUILT_IN = parse(
    (resources.files("toolgate.packs.appdata") / "collections.toml").read_text(encoding="utf-8")
)

"""What a section of settings is made of: its base class, and types that take text or lists."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

_HOST_PORT = re.compile(r"([\w.-]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}", re.ASCII)

_DOCUMENT_FIELD = re.compile(r"[^./]+(\.[^.]+)+")


def _split(value: object) -> object:
    """A list from the environment is one text with commas, or a list in JSON."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("[") and isinstance(listed := _read_json(value), list):
        return cast("list[object]", listed)
    return tuple(word.strip() for word in value.split(",") if word.strip())


def split_paths(value: object) -> object:
    """One file, or several: a list, or one text with commas."""
    return (value,) if isinstance(value, Path) else _split(value)


def _read_json(value: object) -> object:
    """A table from the environment is one JSON text."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _host_ports(values: tuple[str, ...]) -> tuple[str, ...]:
    if not all(_HOST_PORT.fullmatch(one) for one in values):
        raise ValueError("not HOST:PORT")
    return values


def _document_fields(values: tuple[str, ...]) -> tuple[str, ...]:
    if not all(_DOCUMENT_FIELD.fullmatch(one) for one in values):
        raise ValueError("not COLLECTION.FIELD")
    return values


Words = Annotated[tuple[str, ...], BeforeValidator(_split)]
Paths = Annotated[tuple[Path, ...], BeforeValidator(split_paths)]
DocumentFields = Annotated[Words, AfterValidator(_document_fields)]
HostPorts = Annotated[Words, AfterValidator(_host_ports)]
Numbers = Annotated[dict[str, Annotated[int, Field(ge=0)]], BeforeValidator(_read_json)]

Texts = Annotated[dict[str, str], BeforeValidator(_read_json)]
TextLists = Annotated[dict[str, tuple[str, ...]], BeforeValidator(_read_json)]


class BadSettings(ValueError):
    """A setting is unknown or wrong; the message names it and what to write instead."""


class Section(BaseModel):
    """Settings that belong together; unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    borrowed: ClassVar[Mapping[str, str]] = {}
    """Variables that other documents name, each with the key it sets; they mean the same here."""
    switches: ClassVar[Mapping[str, str]] = {}
    """What rules find in `context`, each with the key whose value it is."""

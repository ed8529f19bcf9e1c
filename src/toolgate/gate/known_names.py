"""Which names the objects inside a tool's arguments may have."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

Model = type[BaseModel]
Path = Sequence[int | str]


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names that an object may have; none where no model says so."""

    path: Path
    """Where the object stands, as the caller wrote it."""
    names: list[str]


def names_at(model: Model, location: Path) -> KnownNames:
    """What is known of an object at a location as Pydantic tells it.

    Where there are several models to choose from, Pydantic's location has the one that was tried.
    """
    models, path = [model], list[int | str]()
    for part in location:
        fields = [found[part] for one in models if part in (found := fields_of(one))]
        tried = [one for one in models if one.__name__ == part]
        if fields:
            models = [found for field in fields for found in _models_in(field.annotation)]
        elif tried:
            models = tried
            continue
        path.append(part)
    return KnownNames(path, list(dict.fromkeys(name for one in models for name in fields_of(one))))


def fields_of(model: Model) -> dict[str, FieldInfo]:
    """The fields by what callers write: the alias, where a field has one."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _models_in(annotation: Any) -> Iterator[Model]:
    """The models that an annotation speaks of: `list[A | B] | None` of A and B."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for one in get_args(annotation):
        yield from _models_in(one)

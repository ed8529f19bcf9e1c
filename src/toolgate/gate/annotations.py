"""What is inside a type annotation, wherever Pydantic looks."""

import dataclasses
import sys
from collections.abc import Iterator
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel


def types_within(annotation: Any) -> Iterator[Any]:
    """The annotation, and every type and mark inside it, however deep; each type once."""
    seen: set[Any] = set()
    pending = [annotation]
    while pending:
        one = pending.pop()
        if isinstance(one, type) or _is_alias(one):
            if one in seen:
                continue
            seen.add(one)
        yield one
        pending.extend(_parts(one))


def is_optional(annotation: Any, kind: type) -> bool:
    """Whether it is this type, with or without None."""
    if get_origin(annotation) is Annotated:
        return is_optional(get_args(annotation)[0], kind)
    if get_origin(annotation) in (Union, UnionType):
        members = [one for one in get_args(annotation) if one is not NoneType]
        return len(members) == 1 and is_optional(members[0], kind)
    if _is_alias(annotation):
        return is_optional(_value_of(annotation), kind)
    return annotation is kind


def _parts(annotation: Any) -> Iterator[Any]:
    if _is_alias(annotation):
        yield _value_of(annotation)
    elif (origin := get_origin(annotation)) is not None:
        yield origin
        yield from get_args(annotation)
    elif isinstance(annotation, type):
        kind = cast("type[Any]", annotation)
        if issubclass(kind, BaseModel):
            for field in kind.model_fields.values():
                yield field.annotation
                yield from field.metadata
        elif dataclasses.is_dataclass(kind) or {tuple, dict} & set(kind.__mro__):  # named, typed
            yield from get_type_hints(kind, include_extras=True).values()


def _is_alias(annotation: Any) -> bool:
    """Whether it is made by `type`, or by `TypeAliasType`."""
    return hasattr(annotation, "__value__") and get_origin(annotation) is None


def _value_of(alias: Any) -> Any:
    """What an alias stands for; it may be a text that names types of its module."""
    names = vars(sys.modules[alias.__module__])
    holder = SimpleNamespace(__annotations__={"value": alias.__value__})
    return get_type_hints(holder, names, include_extras=True)["value"]

"""Values that a document store works out as it writes, and what a write makes of a document.

The rules are Firestore's. An increment of what is no number is the number itself; a union with
what is no list is the list itself.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias, cast

from toolgate.ports.documents import (
    Create,
    Delete,
    DocumentExists,
    DocumentNotFound,
    DocumentRefused,
    Fields,
    Json,
    Merge,
    Set,
    Update,
    Write,
)
from toolgate.ports.filters import equal, field_at
from toolgate.ports.rules import LARGEST_INTEGER, MAX_DOCUMENT_BYTES, SMALLEST_INTEGER, json_bytes


@dataclass(frozen=True, slots=True)
class ServerTimestamp:
    """The time of the write: the same one for all writes of a transaction."""


@dataclass(frozen=True, slots=True)
class Increment:
    """The number that is there, and so much more."""

    by: int | float


@dataclass(frozen=True, slots=True)
class ArrayUnion:
    """The list that is there, and those of these values that it lacks."""

    values: Sequence[Json]


@dataclass(frozen=True, slots=True)
class ArrayRemove:
    """The list that is there, without these values."""

    values: Sequence[Json]


@dataclass(frozen=True, slots=True)
class DeleteField:
    """No such field."""


Transform: TypeAlias = ServerTimestamp | Increment | ArrayUnion | ArrayRemove | DeleteField
ABSENT = object()


def now() -> str:
    """The time of a write, as documents have it: RFC 3339 in UTC."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def fields_after(write: Write, before: Fields | None, now: str) -> Fields | None:
    """What is there after a write; None for nothing. `before` stays as it is.

    Raises `DocumentRefused` for what is larger than a document may be: each part may fit alone.
    """
    after = _fields_after(write, before, now)
    if after is not None and (size := json_bytes(after)) > MAX_DOCUMENT_BYTES:
        raise DocumentRefused(
            f"The document would have {size:,} bytes as JSON; one may have at most "
            f"{MAX_DOCUMENT_BYTES:,}. Remove fields, or write some to another document."
        )
    return after


def _fields_after(write: Write, before: Fields | None, now: str) -> Fields | None:
    match write:
        case Create():
            if before is not None:
                raise DocumentExists(write.document_id)
            return _new(write.fields, now)
        case Set():
            return _new(write.fields, now)
        case Merge():
            return _changed(before or {}, _leaves(write.fields), now)
        case Update():
            if before is None:
                raise DocumentNotFound(write.document_id)
            changes = ((path.split("."), value) for path, value in write.changes.items())
            return _changed(before, changes, now)
        case Delete():
            return None


def _new(fields: Fields, now: str) -> Fields:
    """A map as a whole: transforms in it find nothing to go on from."""
    made: Fields = {}
    for name, value in fields.items():
        if isinstance(value, dict):
            made[name] = _new(cast(Fields, value), now)
        else:
            _put(made, name, _worked_out(value, ABSENT, now))
    return made


def _leaves(fields: Fields, above: Sequence[str] = ()) -> Iterator[tuple[list[str], Json]]:
    """The values inside of maps, with their paths; an empty map is one."""
    for name, value in fields.items():
        path = [*above, name]
        if isinstance(value, dict) and value:
            yield from _leaves(cast(Fields, value), path)
        else:
            yield path, value


def _changed(before: Fields, changes: Iterable[tuple[list[str], Json]], now: str) -> Fields:
    after, own = dict(before), _Own()
    for (*way, last), value in changes:
        if isinstance(value, DeleteField) and not isinstance(field_at(after, way), dict):
            continue  # nothing is there, and no map is made for it
        place = own.opened(after, way)
        if isinstance(value, dict):
            place[last] = _new(cast(Fields, value), now)
        else:
            _put(place, last, _worked_out(value, place.get(last, ABSENT), now))
    return after


class _Own:
    """The maps of a new document that are no longer those of the one before: each copied once."""

    def __init__(self) -> None:
        self._maps: dict[int, Fields] = {}  # kept, so that no other map gets the id of one

    def opened(self, fields: Fields, way: Sequence[str]) -> Fields:
        """The map at the end of the way, each on it an own one; made where there is none."""
        for segment in way:
            inside = fields.get(segment)
            if id(inside) not in self._maps:
                inside = dict(cast(Fields, inside)) if isinstance(inside, dict) else {}
                self._maps[id(inside)] = fields[segment] = inside
            fields = cast(Fields, inside)
        return fields


def _put(fields: Fields, name: str, value: Any) -> None:
    if value is ABSENT:
        fields.pop(name, None)
    else:
        fields[name] = value


def _worked_out(value: Any, below: Any, now: str) -> Any:
    """A value as it is stored; ABSENT for none."""
    match value:
        case ServerTimestamp():
            return now
        case Increment():
            return _sum(below, value.by)
        case ArrayUnion():
            there = _list(below)
            return [*there, *_missing(there, value.values)]
        case ArrayRemove():
            return [
                one for one in _list(below) if not any(equal(one, gone) for gone in value.values)
            ]
        case DeleteField():
            return ABSENT
        case _:
            return value


def _sum(there: Any, by: int | float) -> int | float:
    if isinstance(there, bool) or not isinstance(there, int | float):
        return by
    total = there + by
    if isinstance(total, int):  # Firestore's integers stop at their ends
        return max(SMALLEST_INTEGER, min(LARGEST_INTEGER, total))
    return total


def _list(value: Any) -> list[Json]:
    return cast("list[Json]", value) if isinstance(value, list) else []


def _missing(there: Sequence[Json], values: Sequence[Json]) -> list[Json]:
    new: list[Json] = []
    for one in values:
        if not any(equal(one, other) for other in (*there, *new)):
            new.append(one)
    return new

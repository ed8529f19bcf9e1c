"""Writes as Firestore takes them: fields, which of them count, and what the server works out."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from toolgate.adapters.firestore.messages import (
    Document,
    FieldTransform,
    Mask,
    Message,
    Precondition,
    ServerValue,
    WriteMessage,
    quoted,
)
from toolgate.adapters.firestore.values import to_array, to_fields, to_message
from toolgate.ports.documents import Create, Delete, Fields, Json, Merge, Set, Update, Write
from toolgate.ports.transforms import (
    ArrayRemove,
    ArrayUnion,
    DeleteField,
    Increment,
    ServerTimestamp,
)

WORKED_OUT = (ServerTimestamp, Increment, ArrayUnion, ArrayRemove)
"""What the server makes a value of."""


@dataclass(slots=True)
class _Parts:
    """A write, taken apart."""

    fields: Fields = field(default_factory=dict[str, Json])
    mask: list[list[str]] = field(default_factory=list[list[str]])
    """The paths that are replaced, or deleted where `fields` has nothing there."""
    transforms: list[Message] = field(default_factory=list[Message])

    def add(self, path: Sequence[str], value: Json) -> None:
        """Put a value at a path, whatever is there."""
        *way, last = path
        place = self.fields
        for segment in way:
            place = place.setdefault(segment, {})
        self._put(place, last, path, value)

    def _put(self, place: Fields, name: str, path: Sequence[str], value: Json) -> None:
        if isinstance(value, dict):
            place[name] = inside = dict[str, Json]()
            for below, one in cast(Fields, value).items():
                self._put(inside, below, [*path, below], one)
        elif isinstance(value, WORKED_OUT):
            self.transforms.append(_transform(path, value))
        elif not isinstance(value, DeleteField):
            place[name] = value


def write_message(write: Write, name: str) -> Message:
    """A write to the document of this name."""
    match write:
        case Create():
            message = _update(name, _whole(write.fields))
            message.current_document.CopyFrom(Precondition(exists=False))
        case Set():
            message = _update(name, _whole(write.fields))
        case Merge():
            message = _masked(name, _merged(write.fields))
        case Update():
            message = _masked(name, _updated(write.changes))
            message.current_document.CopyFrom(Precondition(exists=True))
        case Delete():
            message = WriteMessage(delete=name)
    return message


def _update(name: str, parts: _Parts) -> Message:
    document = Document(name=name, fields=to_fields(parts.fields))
    return WriteMessage(update=document, update_transforms=parts.transforms)


def _masked(name: str, parts: _Parts) -> Message:
    message = _update(name, parts)
    # Even an empty one: without a mask the whole document would be replaced.
    message.update_mask.CopyFrom(Mask(field_paths=map(quoted, parts.mask)))
    return message


def _whole(fields: Fields) -> _Parts:
    parts = _Parts()
    for name, value in fields.items():
        parts.add([name], value)
    return parts


def _merged(fields: Fields) -> _Parts:
    parts = _Parts()

    def add(above: list[str], fields: Fields) -> None:
        for name, value in fields.items():
            path = [*above, name]
            if isinstance(value, dict) and value:
                add(path, cast(Fields, value))
            else:
                _replace(parts, path, value)

    add([], fields)
    return parts


def _updated(changes: Fields) -> _Parts:
    parts = _Parts()
    for path, value in changes.items():
        if inside := next((one for one in changes if one.startswith(f"{path}.")), None):
            raise ValueError(f"{inside} is inside of {path}, so one update cannot change both")
        _replace(parts, path.split("."), value)
    return parts


def _replace(parts: _Parts, path: list[str], value: Json) -> None:
    if isinstance(value, DeleteField):
        parts.mask.append(path)
        return
    if not isinstance(value, WORKED_OUT):
        parts.mask.append(path)
    parts.add(path, value)


def _transform(path: Sequence[str], value: Any) -> Message:
    message = FieldTransform(field_path=quoted(list(path)))
    match value:
        case Increment():
            message.increment.CopyFrom(to_message(value.by))
        case ArrayUnion():
            message.append_missing_elements.CopyFrom(to_array(list(value.values)))
        case ArrayRemove():
            message.remove_all_from_array.CopyFrom(to_array(list(value.values)))
        case _:
            message.set_to_server_value = ServerValue.REQUEST_TIME
    return message

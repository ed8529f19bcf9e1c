"""Commits: preconditions, masks and transforms, write by write."""

import re
from collections.abc import Mapping
from typing import Any

import grpc
from google.cloud.firestore_v1.types import document
from tests.firestore.wire_server.refusals import Message, Refusal, invalid, unimplemented
from tests.firestore.wire_server.values import key, put, remove, segments_of, value_at

MAX_DOCUMENT_BYTES = 1024 * 1024
RESERVED = re.compile(r"__.*__", re.DOTALL)
VECTOR_MARK = "__type__"
SMALLEST, LARGEST = -(2**63), 2**63 - 1
values: Any = document


def state_after(
    documents: Mapping[str, Message], writes: list[Message], time: Message
) -> dict[str, Message]:
    """All documents after these writes; nothing else is changed."""
    after = dict(documents)
    for write in writes:
        kind = write.WhichOneof("operation")
        name = write.update.name if kind == "update" else write.delete
        check_name(name)
        check_precondition(write, name, name in after)
        match kind:
            case "update":
                after[name] = updated(write, after.get(name), time)
            case "delete":
                after.pop(name, None)
            case _:
                raise unimplemented(f"operation {kind}")
    return after


def check_precondition(write: Message, name: str, exists: bool) -> None:
    """Refuse a write where a document is, or is not, against its precondition."""
    if not write.HasField("current_document"):
        return
    if not write.current_document.HasField("exists"):
        raise unimplemented("only the precondition `exists`")
    if exists and not write.current_document.exists:
        raise Refusal(grpc.StatusCode.ALREADY_EXISTS, f"Document already exists: {name}")
    if not exists and write.current_document.exists:
        raise Refusal(grpc.StatusCode.NOT_FOUND, f"No document to update: {name}")


def updated(write: Message, before: Message | None, time: Message) -> Message:
    """A document after an update of it, or of the fields in its mask."""
    after: Message = values.Document.pb()(name=write.update.name)
    check_fields(write.update.fields)
    if write.HasField("update_mask"):
        if before is not None:
            after.CopyFrom(before)
        apply_mask(after.fields, write)
    else:
        after.CopyFrom(write.update)
    for one in write.update_transforms:
        apply_transform(after.fields, one, time)
    if after.ByteSize() > MAX_DOCUMENT_BYTES:
        raise invalid("Document cannot be written because its size exceeds 1,048,576 bytes.")
    after.create_time.CopyFrom(before.create_time if before is not None else time)
    after.update_time.CopyFrom(time)
    return after


def apply_mask(fields: Message, write: Message) -> None:
    """Replace what the mask names; remove what the update does not have there."""
    paths = [segments_of(path) for path in write.update_mask.field_paths]
    for one in paths:
        if any(one != other and one == other[: len(one)] for other in paths):
            raise invalid("Field paths of the mask conflict.")
    for path in write.update_mask.field_paths:
        value = value_at(write.update.fields, path)
        if value is None:
            remove(fields, path)
        else:
            put(fields, path, value)


def apply_transform(fields: Message, transform: Message, time: Message) -> None:
    """Put a value where the server works it out."""
    before = value_at(fields, transform.field_path)
    new: Message = values.Value.pb()()
    match transform.WhichOneof("transform_type"):
        case "set_to_server_value":
            new.timestamp_value.CopyFrom(time)
        case "increment":
            new.CopyFrom(sum_of(before, transform.increment))
        case "append_missing_elements":
            new.array_value.values.extend(elements(before))
            for one in transform.append_missing_elements.values:
                if key(one) not in map(key, new.array_value.values):
                    new.array_value.values.append(one)
        case "remove_all_from_array":
            gone = [key(one) for one in transform.remove_all_from_array.values]
            new.array_value.values.extend(one for one in elements(before) if key(one) not in gone)
        case kind:
            raise unimplemented(f"transform {kind}")
    check_value(new)
    put(fields, transform.field_path, new)


def elements(value: Message | None) -> list[Message]:
    """What an array holds; nothing, where there is none."""
    if value is None or value.WhichOneof("value_type") != "array_value":
        return []
    return list(value.array_value.values)


def sum_of(before: Message | None, more: Message) -> Message:
    """Integers stop at their ends; with a double, the sum is one; what is no number is replaced."""
    numbers = ("integer_value", "double_value")
    if before is None or before.WhichOneof("value_type") not in numbers:
        return more
    kinds = before.WhichOneof("value_type"), more.WhichOneof("value_type")
    total = getattr(before, kinds[0]) + getattr(more, kinds[1])
    if "double_value" in kinds:
        return values.Value.pb()(double_value=total)
    return values.Value.pb()(integer_value=max(SMALLEST, min(LARGEST, total)))


def check_name(name: str) -> None:
    """Refuse a document name with a segment Firestore does not allow."""
    segments = name.split("/")[5:]
    if not segments or len(segments) % 2:
        raise invalid(f"Document name {name!r} has an odd number of segments.")
    for segment in segments:
        if segment in ("", ".", "..") or RESERVED.fullmatch(segment):
            raise invalid(f"Resource id {segment!r} is invalid.")


def check_fields(fields: Message) -> None:
    """Refuse field names and values Firestore does not store."""
    for name, value in fields.items():
        if not name or (RESERVED.fullmatch(name) and name != VECTOR_MARK):
            raise invalid(f"Field name {name!r} is invalid.")
        check_value(value)


def check_value(value: Message, *, inside_array: bool = False) -> None:
    """Refuse an array directly inside an array."""
    kind = value.WhichOneof("value_type")
    if kind == "array_value":
        if inside_array:
            raise invalid("Property array contains an invalid nested entity.")
        for one in value.array_value.values:
            check_value(one, inside_array=True)
    elif kind == "map_value":
        check_fields(value.map_value.fields)

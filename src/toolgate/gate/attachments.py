"""Attachments: bytes that an answer hands over by reference.

A tool that reads may have one field of its Output hold one:

    content_bytes_base64: Attachment = Field(description="The file.")

JSON has the bytes in that field, as base64. MCP has a link instead, whose URI names the tool and
its arguments: reading it is the same call again, so there is nothing to keep, to expire or to
steal.
"""

import base64
import json
import mimetypes
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Self, cast

import orjson
from pydantic import BaseModel, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from toolgate.gate.annotations import is_optional, types_within
from toolgate.gate.errors import BadResult, InvalidArguments, Problem

OCTETS = "application/octet-stream"
MEDIA_TYPE = re.compile(
    r"[\w!#$&^.+-]{1,127}/[\w!#$&^.+-]{1,127}(; ?[\w-]{1,40}=[\w.:+-]{1,100}){0,4}", re.ASCII
)
SEPARATORS = re.compile(r"[/\\]")
MAX_STEM, MAX_SUFFIX = 200, 40
"""Bytes of a file's name; together less than any file system takes."""
URI = "toolgate://attachments/"
MAX_LINKED = 4096
"""Bytes of arguments in a link; MCP repeats its URI in a header."""
MAX_BRACKETS = 100
"""In a link's arguments; as in a request, what is nested deeper could not be answered."""


Pieces = AsyncGenerator[bytes | bytearray | memoryview]
"""Bytes, in pieces of at most `MAX_PIECE`."""
MAX_PIECE = 1024 * 1024
MAX_EMBEDDED = 32 * 1024
"""Bytes of a text that stands beside its link: a model reads results, but follows no links."""


class Delivery(Enum):
    """How the attachment of an answer is handed over."""

    INLINE = "inline"
    """Its bytes: the gate reads them in the time of the call."""
    PIECES = "pieces"
    """The same, but piece by piece where the tool can give them so: they are not in memory."""
    LINK = "link"
    """A URI to read it by; its bytes are read now only where they may be a short text."""
    REFUSED = "refused"
    """Not at all: the answer waits in memory for others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """Bytes of a known size, read only where somebody wants them."""

    size: int
    read: Callable[[], Awaitable[bytes]]
    """Gives exactly `size` bytes. It runs with the handler, in the time of the call."""
    media_type: str = OCTETS
    name: str = ""
    """Of the file, as far as there is one; it may come from anywhere."""
    pieces: Callable[[], Awaitable[Pieces]] | None = None
    """Where so many bytes should not be in memory: makes sure that all of them are good, in the
    time of the call, and gives what they are then read from."""

    def __post_init__(self) -> None:
        """Refuse what would fail only after the call was answered."""
        for name, kind in (("size", int), ("media_type", str), ("name", str)):
            if not isinstance(getattr(self, name), kind):
                found = type(getattr(self, name)).__name__
                raise BadResult(f"{name} of an Attachment must be {kind.__name__}, not {found}")

    @classmethod
    def of(cls, data: bytes, *, media_type: str = OCTETS, name: str = "") -> Self:
        """Bytes that are there already."""
        check_bytes(data)

        async def read() -> bytes:
            return data

        return cls(size=len(data), read=read, media_type=media_type, name=name)

    @property
    def content_type(self) -> str:
        """The media type, if it is one."""
        return self.media_type if MEDIA_TYPE.fullmatch(self.media_type) else OCTETS

    @property
    def file_name(self) -> str:
        """A name that is good in any folder, whatever `name` says, and leads to no other."""
        last = SEPARATORS.split(self.name)[-1]
        plain = "".join("_" if one in ':*?"<>|' or not one.isprintable() else one for one in last)
        plain = plain.strip(". ")
        if not plain:
            kind = self.content_type.partition(";")[0]
            return f"attachment{mimetypes.guess_extension(kind) or '.bin'}"
        stem, dot, suffix = plain.rpartition(".")
        return (
            f"{_cut(stem, MAX_STEM)}.{_cut(suffix, MAX_SUFFIX)}" if dot else _cut(plain, MAX_STEM)
        )

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Only an attachment is one; it is taken out of a result before that becomes JSON."""
        never = core_schema.plain_serializer_function_ser_schema(_refuse_json, when_used="json")
        return core_schema.is_instance_schema(cls, serialization=never)

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        """As JSON has it."""
        return {"type": "string", "contentEncoding": "base64"}


def check_bytes(data: object) -> None:
    """Raise where an attachment's content is something else than bytes."""
    if not isinstance(data, bytes):
        raise BadResult(f"data of an Attachment must be bytes, not {type(data).__name__}")


def _refuse_json(_: Attachment) -> None:
    raise TypeError("an Attachment is handed over as the field of an Output, nowhere else")


def _cut(text: str, most: int) -> str:
    return text.encode()[:most].decode(errors="ignore")


class BadAttachment(TypeError):
    """An attachment is declared where transports could not hand it over; the sentence says why."""


def attachment_field(model: type[BaseModel]) -> str | None:
    """The field of an Output that is an attachment, or may be one."""
    fields = {name: one.annotation for name, one in model.model_fields.items()}
    holding = [name for name, one in fields.items() if Attachment in types_within(one)]
    if not holding:
        return None
    if len(holding) > 1:
        raise BadAttachment(f"has attachments in {' and '.join(holding)}: one is possible")
    if not is_optional(fields[holding[0]], Attachment):
        told = "make it a field of the Output, with or without None"
        raise BadAttachment(f"has an attachment inside {holding[0]}: {told}")
    return holding[0]


def uri_of(tool: str, arguments: Any) -> str:
    """The URI of what a tool hands over for these arguments."""
    told = json.dumps(arguments or {}, ensure_ascii=False, separators=(",", ":")).encode()
    if not _is_linkable(told):
        raise InvalidArguments(
            [
                Problem(
                    "arguments",
                    "range",
                    f"The arguments have {len(told)} bytes as JSON, and a link to an attachment "
                    f"holds at most {MAX_LINKED}, with {MAX_BRACKETS} lists and objects. "
                    "Give less, or call the tool over plain HTTP",
                )
            ]
        )
    return f"{URI}{tool}/{base64.urlsafe_b64encode(told).decode().rstrip('=')}"


def linked_call(uri: str) -> tuple[str, dict[str, Any]] | None:
    """The tool and the arguments that a URI names; None where it is not one of `uri_of`."""
    tool, _, encoded = uri.removeprefix(URI).partition("/")
    if not uri.startswith(URI) or len(encoded) > 2 * MAX_LINKED:
        return None
    try:
        told = base64.b64decode(encoded + "=" * (-len(encoded) % 4), b"-_", validate=True)
        if not _is_linkable(told):
            return None
        orjson.loads(told)  # as strict as for a request: UTF-8, whole characters, finite numbers
        arguments: Any = json.loads(told)  # integers keep every digit
    except ValueError:
        return None
    return (tool, cast("dict[str, Any]", arguments)) if isinstance(arguments, dict) else None


def _is_linkable(told: bytes) -> bool:
    return len(told) <= MAX_LINKED and told.count(b"[") + told.count(b"{") <= MAX_BRACKETS

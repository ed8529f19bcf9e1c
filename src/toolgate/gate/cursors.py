"""Cursors: where a list goes on, in a text that only this gate can make.

A cursor names the last row of a page, so rows that are inserted or deleted between two pages move
nothing. It is signed together with the list it belongs to (the tool and its filters): a changed
one, or one of another list, is refused.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence
from typing import Any, NoReturn, cast

import orjson
from sqlalchemy import select

from toolgate.db.engine import Database
from toolgate.db.tables import signing_keys
from toolgate.gate.errors import InvalidArguments, Problem

NAME = "cursors"
SIGNATURE_BYTES = 16
MAX_CHARACTERS = 4096
"""Of the longest position, a path of 1,024 bytes that JSON writes as twice as many, it is 2,758."""


class Cursors:
    """Makes and reads cursors with one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def make(self, listing: Sequence[Any], position: Sequence[Any]) -> str:
        """The cursor of a list, identified by `listing`, after the row at `position`."""
        content = orjson.dumps(list(position))
        signed_content = self._signature(listing, content) + content
        return _text(signed_content)

    def read(self, listing: Sequence[Any], cursor: str | None) -> list[Any] | None:
        """The position that a cursor of this list names; None without one."""
        if cursor is None:
            return None
        try:
            signed_content = base64.b64decode(
                cursor + "=" * (-len(cursor) % 4), b"-_", validate=True
            )
        except (binascii.Error, ValueError):
            _refuse(cursor)
        if _text(signed_content) != cursor:  # other spellings of the same bytes
            _refuse(cursor)
        signature, content = signed_content[:SIGNATURE_BYTES], signed_content[SIGNATURE_BYTES:]
        if not hmac.compare_digest(signature, self._signature(listing, content)):
            _refuse(cursor)
        return cast("list[Any]", orjson.loads(content))

    def _signature(self, listing: Sequence[Any], content: bytes) -> bytes:
        signed = orjson.dumps(list(listing)) + b"\n" + content
        return hmac.digest(self._key, signed, hashlib.sha256)[:SIGNATURE_BYTES]


def _text(signed_content: bytes) -> str:
    return base64.urlsafe_b64encode(signed_content).rstrip(b"=").decode()


def _refuse(cursor: str) -> NoReturn:
    raise InvalidArguments(
        [
            Problem(
                "cursor",
                "format",
                "cursor is not one that this list gave out for these arguments. Use next_cursor of "
                "its last page, or leave it out to begin at the first page",
                cursor[:64],
            )
        ]
    )


async def cursors_of(database: Database) -> Cursors:
    """Cursors signed with the database's own key, which every server on it shares."""
    statement = select(signing_keys.c.key).where(signing_keys.c.name == NAME)
    key = await database.read(lambda connection: connection.scalar(statement))
    if key is None:
        raise LookupError(f"table {signing_keys.name} has no key {NAME!r}")
    return Cursors(key)

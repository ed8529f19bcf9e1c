"""From the values of a backup's rows to those that a database's driver takes."""

from base64 import b64decode
from collections.abc import Callable, Sequence
from typing import Any, cast

from toolgate.backups.archive import ALTERED, BadBackup
from toolgate.backups.layout import Column

Decode = Callable[[Any], Any]


def decoders(columns: Sequence[Column], *, as_text: bool) -> list[tuple[int, Decode]]:
    """What is to be done with the values at some places of a row.

    `as_text`: for a driver that wants a text for every column it has no type for, such as JSON.
    """
    made = {"bytes": _bytes, "number": _number, "boolean": _boolean}
    if not as_text:  # SQLite keeps whatever it is given, also bytes in a column of texts
        made |= dict.fromkeys(["text", "json", "integer", "other"], _any)
    return [(place, made[one.kind]) for place, one in enumerate(columns) if one.kind in made]


def decode(rows: list[list[Any]], places: Sequence[tuple[int, Decode]]) -> None:
    """Make the values of rows what the driver takes, in their places."""
    for row in rows:
        for place, made in places:
            if row[place] is not None:
                row[place] = made(row[place])


def _bytes(value: Any) -> Any:
    told = cast("dict[str, Any]", value).get("base64") if isinstance(value, dict) else None
    if not isinstance(told, str):
        raise BadBackup(ALTERED.format("bytes that are none"))
    try:
        return b64decode(told, validate=True)
    except ValueError:
        raise BadBackup(ALTERED.format("bytes that are none")) from None


def _number(value: Any) -> Any:
    told = cast("dict[str, Any]", value).get("number") if isinstance(value, dict) else value
    try:
        return float(told) if isinstance(told, str) else told
    except ValueError:
        raise BadBackup(ALTERED.format("a number that is none")) from None


def _boolean(value: Any) -> Any:
    return bool(value)


def _any(value: Any) -> Any:
    return _bytes(value) if isinstance(value, dict) else value

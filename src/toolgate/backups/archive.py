"""The file of a backup: lines of JSON, compressed by gzip.

    {"toolgate_backup": 1, "moment": …, "revisions": {…}, "tables": [{"name": …, "columns": …}, …]}
    {"table": "documents"}
    [1, "appname", "users", "abc123", "{…}"]          a row: its values, in the columns' order
    {"rows": 1, "sha256": "…"}                        of the lines of these rows
    …
    {"end": true, "tables": {…}, "sequences": {…}, "sha256": "…"}

The last line comes last of all: a file without it was never finished. Its digest is that of the
first line and of each table's last line, so every line is under one.
"""

import gzip
import hashlib
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO, cast

import orjson

FORMAT = "toolgate_backup"
VERSION = 1
LEVEL = 3
"""Of compression: twice as fast as the usual one, for a tenth more bytes."""
GZIP = 31
"""How zlib is told to write a gzip file."""
MAX_HEAD = 256 * 1024
"""Bytes of a line about the rest: with every pack enabled, the first has less than 32 KiB."""
MAX_LINE = 64 * 1024**2
"""Of a row: far more than the largest document with its change, or the body of a request."""
MAX_BATCH = 1024**2
"""Bytes of lines that rows are handed over from at once, but for one that is longer."""
MAGIC = b"\x1f\x8b"
Sink = Callable[[bytes], None]
"""Takes the next bytes of a file."""


class BadBackup(Exception):
    """A file is no whole backup, or none that can be used here; the message says why."""


CUT = "The backup ends too early: it was cut, or never finished. Use another one."
ALTERED = "The backup was altered after it was made ({}). Use another one."
TOO_LONG = f"A row of {{}} has more than {MAX_LINE // 1024**2} MiB: make it smaller, or remove it."
FOREIGN = "This is no backup of toolgate. Name a file that `toolgate backup` wrote."


class ArchiveWriter:
    """Writes the lines of a backup to a sink, compressed."""

    def __init__(self, sink: Sink, head: dict[str, Any]) -> None:
        self._sink = sink
        self._packer = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
        self._chain = hashlib.sha256()
        self._tables: dict[str, dict[str, Any]] = {}
        self._table = ""
        self._rows = 0
        self._digest = hashlib.sha256()
        self._write_chained({FORMAT: VERSION} | head)

    def begin(self, table: str) -> None:
        """The next rows are of this table."""
        self._table, self._rows, self._digest = table, 0, hashlib.sha256()
        self._write(_line({"table": table}))

    def rows(self, rows: Sequence[Sequence[Any]]) -> None:
        """Write some rows of the table."""
        each = [_line(row) for row in rows]
        if any(len(one) > MAX_LINE for one in each):
            raise BadBackup(TOO_LONG.format(self._table))
        lines = b"".join(each)
        self._digest.update(lines)
        self._rows += len(rows)
        self._write(lines)

    def end(self) -> None:
        """The table is complete."""
        about = {"rows": self._rows, "sha256": self._digest.hexdigest()}
        self._tables[self._table] = about
        self._write_chained(about)

    def close(self, **told: Any) -> dict[str, Any]:
        """Write the end; what it says."""
        end = {"end": True, "tables": self._tables, **told, "sha256": self._chain.hexdigest()}
        self._write(_line(end))
        self._sink(self._packer.flush())
        return end

    def _write_chained(self, value: dict[str, Any]) -> None:
        line = _line(value)
        self._chain.update(line)
        self._write(line)

    def _write(self, line: bytes) -> None:
        if packed := self._packer.compress(line):
            self._sink(packed)


class ArchiveReader:
    """Reads the lines of a backup; raises `BadBackup` where they are not as they were written."""

    def __init__(self, file: BinaryIO) -> None:
        self._lines = gzip.GzipFile(fileobj=file, mode="rb")
        self._chain = hashlib.sha256()
        self._found: dict[str, dict[str, Any]] = {}
        line = self._line(MAX_HEAD)
        head = _object(line)
        if FORMAT not in head:
            raise BadBackup(FOREIGN)
        given = head[FORMAT]
        if not isinstance(given, int) or isinstance(given, bool) or given < 1:
            raise BadBackup(ALTERED.format("its first line: the format is no number of one"))
        if given != VERSION:
            raise BadBackup(
                f"The backup has the format {given}, and this version reads {VERSION}. Use the "
                "version of toolgate that made it, or a newer one."
            )
        self._chain.update(line)
        self.head = head

    def tables(self) -> Iterator[str]:
        """The name of each table; its rows have to be read before the next one."""
        while "table" in (about := _object(self._line(MAX_HEAD))):
            if not isinstance(about["table"], str):
                raise BadBackup(ALTERED.format("a line out of its place"))
            yield about["table"]
        self._check_end(about)
        self.end = about

    def rows(self, table: str, columns: int, many: int) -> Iterator[list[list[Any]]]:
        """The rows of a table, some at a time."""
        digest, count = hashlib.sha256(), 0
        batch: list[list[Any]] = []
        size = 0
        while (line := self._line(MAX_LINE))[:1] == b"[":
            digest.update(line)
            row = _read(line)
            if not isinstance(row, list) or len(cast("list[Any]", row)) != columns:
                raise BadBackup(ALTERED.format(f"a row of {table}"))
            count += 1
            batch.append(cast("list[Any]", row))
            size += len(line)
            if len(batch) == many or size > MAX_BATCH:
                yield batch
                batch, size = [], 0
        yield batch
        about = {"rows": count, "sha256": digest.hexdigest()}
        if _object(line) != about:
            raise BadBackup(ALTERED.format(f"rows of {table}"))
        self._chain.update(line)
        self._found[table] = about

    def _check_end(self, end: dict[str, Any]) -> None:
        if end.get("end") is not True:
            raise BadBackup(ALTERED.format("a line that is none of a backup"))
        if end.get("sha256") != self._chain.hexdigest() or end.get("tables") != self._found:
            raise BadBackup(ALTERED.format("its end does not fit the rest"))
        if self._read_line(1):
            raise BadBackup(ALTERED.format("something follows its end"))

    def _line(self, most: int) -> bytes:
        line = self._read_line(most)
        if not line.endswith(b"\n"):
            raise BadBackup(CUT if len(line) < most else ALTERED.format("a line too long"))
        return line

    def _read_line(self, most: int) -> bytes:
        try:
            return self._lines.readline(most)
        except EOFError:
            raise BadBackup(CUT) from None
        except gzip.BadGzipFile as problem:
            foreign = "Not a gzipped file" in str(problem)
            raise BadBackup(FOREIGN if foreign else ALTERED.format("its checksum")) from None
        except zlib.error:
            raise BadBackup(ALTERED.format("it cannot be unpacked")) from None


def _line(value: Any) -> bytes:
    return orjson.dumps(value, default=_plain, option=orjson.OPT_APPEND_NEWLINE)


def _plain(value: Any) -> Any:
    """What JSON has no type for; `values.py` reads it."""
    if isinstance(value, bytes):
        return {"base64": b64encode(value).decode()}
    raise TypeError(f"a backup cannot hold a {type(value).__name__}")


def _read(line: bytes) -> Any:
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        raise BadBackup(ALTERED.format("a line that is no JSON")) from None


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        value = None
    if not isinstance(value, dict):
        raise BadBackup(FOREIGN if value is None else ALTERED.format("a line out of its place"))
    return cast("dict[str, Any]", value)

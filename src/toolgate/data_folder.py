"""The data folder and the embedded database: found, made, and for their owner alone."""

import contextlib
import logging
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from toolgate.db.engine import Database
from toolgate.db.schemas import Schema
from toolgate.db.upgrades import current_revision, upgrade_at_start

logger = logging.getLogger(__name__)

KEY_FILE = "admin-key"
PRIVATE_FOLDER, PRIVATE_FILE, OF_OTHERS = 0o700, 0o600, 0o077
BESIDE = ("", "-wal", "-shm", "-journal")
"""What SQLite keeps beside its file; new ones get the mode of the file itself."""
OURS = (
    *(f"toolgate.db{end}" for end in BESIDE),
    KEY_FILE,
    "tls",
    "blobs",
    "repositories",
    "campaigns",
)


class NoData(Exception):
    """There is nothing to work on here, and none may be made; the message says where it looked."""


async def make_ready(
    database: Database, data: Path, packs: Sequence[Schema] = (), *, existing: bool
) -> None:
    """Bring the data to the newest schema; with `existing`, none is made where there is none."""
    if existing:
        await _check_there(database, embedded_file(database))
        _close_to_others(data, embedded_file(database))
    else:
        make_private(data, database)
    await upgrade_at_start(database, packs)


def make_private(data: Path, database: Database) -> None:
    """Make the folder and the database's file if need be, and close what others can read."""
    file = embedded_file(database)
    for folder in {data, file.parent if file else data}:
        if not folder.is_dir():
            folder.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
            folder.chmod(PRIVATE_FOLDER)
    if file is not None:
        # SQLite would make it for everybody to read.
        with contextlib.suppress(FileExistsError):
            os.close(_new(file))
    _close_to_others(data, file)


def embedded_file(database: Database) -> Path | None:
    """The file of an embedded database; None for a server or one in memory."""
    name = database.url.database
    return Path(name) if database.dialect == "sqlite" and name not in (None, ":memory:") else None


async def _check_there(database: Database, file: Path | None) -> None:
    if file is not None:
        _check_file(file)
    if await current_revision(database) is None:
        where = file or "The database of database.url"
        raise NoData(f"{where} holds no data of toolgate. `toolgate db upgrade` prepares it.")


def _check_file(file: Path) -> None:
    if not file.exists():
        raise NoData(
            f"There is no data in the folder {file.parent.absolute()}: {file.name} is not there. "
            "Name the folder with --data, or the settings file with --config; `toolgate serve` "
            "and `toolgate db upgrade` make a new one."
        )


def write_private(file: Path, text: str) -> None:
    """Put a file in place whole, readable for its owner alone from its first byte."""
    fresh = file.with_name(f"{file.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(_new(fresh), "w", encoding="utf-8") as opened:
        opened.write(text)
    fresh.replace(file)


def _new(file: Path) -> int:
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, PRIVATE_FILE)
    if sys.platform != "win32":
        os.fchmod(descriptor, PRIVATE_FILE)  # whatever the umask takes away
    return descriptor


def readable_by_others(data: Path, file: Path | None) -> list[Path]:
    """What others on this machine can get at, though it should be the owner's alone."""
    if sys.platform == "win32":
        return []
    return [path for path in _private(data, file) if path.stat().st_mode & OF_OTHERS]


def _private(data: Path, file: Path | None) -> Iterator[Path]:
    if data.is_dir() and _only_ours(data):
        yield data
    database = [file.with_name(file.name + end) for end in BESIDE] if file else []
    tls = data / "tls"
    keys = [tls / "ca-key.pem", tls / "key.pem"]
    yield from (one for one in (*database, data / KEY_FILE, *keys) if one.is_file())


def _only_ours(folder: Path) -> bool:
    """Whether nobody else has anything in the folder: `--data /tmp` must not close /tmp."""
    mode = folder.stat().st_mode
    return not mode & stat.S_ISVTX and all(one.name in OURS for one in folder.iterdir())


def _close_to_others(data: Path, file: Path | None) -> None:
    for path in readable_by_others(data, file):
        try:
            path.chmod(PRIVATE_FOLDER if path.is_dir() else PRIVATE_FILE)
        except OSError as problem:
            why = problem.strerror or str(problem)
            logger.warning("%s can be read by others, and its mode cannot be set: %s.", path, why)
        else:
            logger.warning("%s could be read by others; it is now the owner's alone.", path)

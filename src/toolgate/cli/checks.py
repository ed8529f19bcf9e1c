"""The checks of `toolgate doctor`: each looks at one thing and says what to do."""

import json
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from toolgate.cli import opening
from toolgate.cli.principals import IN_FORCE, key_state
from toolgate.cli.problems import told
from toolgate.cli.serve import url_of

if TYPE_CHECKING:
    from toolgate.db.engine import Database
    from toolgate.settings import Settings


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report."""

    name: str
    state: State
    says: str


LITTLE_SPACE = 1024**3
NO_SPACE = 100 * 1024**2
ANSWER_SECONDS = 2
STORE_SECONDS = 15
MOST_AHEAD_SECONDS = 60
OLDEST_CLOCK = datetime(2026, 1, 1, tzinfo=UTC)
EXTRAS = {"postgres": "psycopg", "firestore": "google.cloud.firestore", "redis": "redis"}


def problem(name: str, error: Exception) -> Check:
    """A failure in the words of the command line."""
    known = told(error)
    return Check(name, State.FAIL, known[0] if known else f"{type(error).__name__}: {error}")


def check_file(config: Path | None) -> Check:
    """The settings were read, from where."""
    from toolgate.settings import FILE_NAME

    path = config or Path(FILE_NAME)
    if not path.is_file():
        told = f"No {path} here, so defaults and the environment count."
        return Check("settings", State.OK, f"{told} `toolgate init` writes one.")
    return Check("settings", State.OK, f"{path} is valid.")


def check_data(settings: "Settings") -> Check:
    """The data folder can be written, and has room."""
    folder = settings.data
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            free = shutil.disk_usage(there).free
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        step = "Make it a folder you can write to, or name another with --data."
        return Check("data folder", State.FAIL, f"{there}: {why}. {step}")
    room = f"{free / 1024**3:.1f} GiB free"
    if free < LITTLE_SPACE:
        state = State.FAIL if free < NO_SPACE else State.WARN
        return Check("data folder", state, f"{folder}: only {room}. Make room on the disk.")
    if not folder.exists():
        return Check("data folder", State.OK, f"{folder} is made at the first start; {room}.")
    return Check("data folder", State.OK, f"{folder} is writable; {room}.")


def check_port(settings: "Settings") -> Check:
    """The port is free, or a toolgate answers there."""
    from toolgate.serving import listening

    url = url_of(settings.server.host, settings.server.port)
    try:
        listening(settings).close()
    except PermissionError:
        told = f"Port {settings.server.port} needs more rights. Choose one above 1023."
        return Check("port", State.FAIL, told)
    except socket.gaierror:
        told = f"There is no address {settings.server.host!r} here. Change server.host."
        return Check("port", State.FAIL, told)
    except OSError:
        if _answers(url):
            return Check("port", State.OK, f"A toolgate answers at {url}.")
        told = f"{url} is taken by another program. Choose another with --port."
        return Check("port", State.WARN, told)
    return Check("port", State.OK, f"{url} is free.")


def _answers(url: str) -> bool:
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=ANSWER_SECONDS) as answer:  # noqa: S310
            return json.load(answer) == {"status": "ok"}
    except urllib.error.HTTPError as refusal:
        # A toolgate that is not meant for this host name still stamps its answer.
        return "x-request-id" in refusal.headers
    except (OSError, ValueError):
        return False


def check_extras(settings: "Settings") -> Check:
    """The packages that the settings ask for are installed."""
    needed = {
        "postgres": settings.database_url.startswith("postgres"),
        "firestore": settings.uses_firestore,
        "redis": "redis" in settings.limits.store,
    }
    there = {name for name, module in EXTRAS.items() if _installed(module)}
    missing = [name for name, wanted in needed.items() if wanted and name not in there]
    if missing:
        told = f"The settings need {', '.join(missing)}."
        return Check("extras", State.FAIL, f"{told} Install toolgate[{','.join(missing)}].")
    listed = [f"{name} {'installed' if name in there else 'not installed'}" for name in EXTRAS]
    return Check("extras", State.OK, f"{', '.join(listed)}.")


def _installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


async def check_store(settings: "Settings") -> Check:
    """The rules can be read and the document store answers; tried on a database in passing."""
    import anyio

    from toolgate.app import opened
    from toolgate.settings import DatabaseSettings

    with tempfile.TemporaryDirectory() as folder:
        trial = settings.model_copy(
            update={"data": Path(folder), "database": DatabaseSettings(url=None)}
        )
        try:
            with anyio.fail_after(STORE_SECONDS):
                async with opened(trial) as app:
                    await app.gate.ports.documents.check()
                    tools = len(app.gate.catalogue)
        except TimeoutError:
            told = f"No answer within {STORE_SECONDS} s. Check documents.url and the network."
            return Check("documents", State.FAIL, told)
        except Exception as error:
            return problem("documents", error)
    where = "Firestore answers" if settings.uses_firestore else "kept in the database"
    return Check("documents", State.OK, f"{where}; {tools} tools, rules are valid.")


async def check_database(settings: "Settings") -> AsyncIterator[Check]:
    """Schema, keys, audit and clock; only looked at, never changed."""
    from toolgate.db.engine import Database

    try:
        database = Database(settings.database_url)
    except Exception as error:
        yield problem("database", error)
        return
    try:
        file = opening.embedded_file(database)
        if file and not file.exists():
            yield Check("database", State.OK, f"{file} is made at the first start.")
            yield _keys(settings, [])
            return
        schema = await _schema(database)
        yield schema
        if schema.state is State.OK:
            async for check in _contents(settings, database):
                yield check
    except Exception as error:
        yield problem("database", error)
    finally:
        await database.close()


async def _schema(database: "Database") -> Check:
    from toolgate.db.upgrades import current, newest

    has, needs = await current(database), newest()
    what = f"{database.dialect} answers"
    if has == needs:
        return Check("database", State.OK, f"{what}; schema {has}.")
    if has is not None and has > needs:
        told = f"{what}; schema {has} is newer than this version knows ({needs})."
        return Check("database", State.FAIL, f"{told} Install a newer toolgate.")
    state = State.FAIL if has and database.dialect != "sqlite" else State.WARN
    step = "Run `toolgate db upgrade`."
    return Check("database", state, f"{what}; schema {has or 'none'}, needs {needs}. {step}")


async def _contents(settings: "Settings", database: "Database") -> AsyncIterator[Check]:
    from toolgate.gate.seals import verify
    from toolgate.gate.trail import rows
    from toolgate.identity.keys import Keys

    yield _keys(settings, await Keys(database).list())
    verdict = await verify(database)
    if verdict.findings:
        first = verdict.findings[0]
        told = f"{len(verdict.findings)} findings, the first: {first.what} {first.seq}."
        yield Check("audit", State.FAIL, f"{told} Run `toolgate audit verify`.")
    else:
        yield Check("audit", State.OK, f"intact: {verdict.rows} rows, {verdict.seals} seals.")
    newest = await rows(database, limit=1)
    yield check_clock(newest[-1]["created_at"] if newest else None, datetime.now(UTC))


def _keys(settings: "Settings", known: list[dict[str, object]]) -> Check:
    if settings.admin_key:
        return Check("admin key", State.OK, "set by a setting.")
    good = sum(1 for row in known if row["role"] == "admin" and key_state(row) == IN_FORCE)
    if good:
        return Check("admin key", State.OK, f"{good} in force.")
    return Check("admin key", State.WARN, "none; the next `toolgate serve` makes one.")


def check_clock(newest: str | None, now: datetime) -> Check:
    """The clock is not behind what was already written."""
    if now < OLDEST_CLOCK:
        return Check("clock", State.FAIL, f"It says {now:%Y-%m-%d}. Set the system's time.")
    ahead = (datetime.fromisoformat(newest) - now).total_seconds() if newest else 0
    if ahead > MOST_AHEAD_SECONDS:
        told = f"The newest audit row is {ahead:.0f} s in the future."
        return Check("clock", State.FAIL, f"{told} Set the system's time.")
    return Check("clock", State.OK, f"{now:%Y-%m-%d %H:%M:%S} UTC.")

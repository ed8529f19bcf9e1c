"""`/readyz` says yes only where a call would be answered, and is cheap to ask."""

import logging
import shutil
from pathlib import Path
from typing import Any

import anyio
import psycopg
import pytest
from sqlalchemy import event, func, select
from tests.databases import STARTS_A_SERVER
from tests.patience import PATIENT
from tests.transports.conftest import Web, opened_web

from toolgate import readiness
from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.db.engine import Database
from toolgate.db.health import DatabaseHealth
from toolgate.db.tables import write_checks
from toolgate.db.upgrades import upgrade
from toolgate.readiness import AGAIN_SECONDS, Readiness, ReadinessCheck

pytestmark = pytest.mark.anyio

READY = (200, {"status": "ready"})


def failing(*parts: str) -> tuple[int, dict[str, Any]]:
    return 503, {"status": "unavailable", "failing": list(parts)}


async def asked(web: Web) -> tuple[int, Any]:
    async with web.client(None) as client:
        answer = await client.get("/readyz")
        assert (await client.get("/healthz")).status_code == 200
    return answer.status_code, answer.json()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is believed for longer than one question."""
    given = ReadinessCheck.__init__

    def forgetful(self: ReadinessCheck, part: str, run: Any, good_for: float = 0.0) -> None:
        given(self, part, run, 0.0)

    monkeypatch.setattr(ReadinessCheck, "__init__", forgetful)
    monkeypatch.setattr(readiness, "AGAIN_SECONDS", 0.0)


def only_read(database: Database) -> None:
    """From now on the file is on a disk that is mounted read-only, as SQLite sees it."""
    engine = database._writer

    @event.listens_for(engine, "connect")
    def read_only(connection: Any, _: Any) -> None:
        connection.execute("PRAGMA query_only = ON")

    engine.dispose()


# What makes a server not ready


@pytest.mark.usefixtures("at_once")
async def test_a_database_that_cannot_be_written_is_not_ready(tmp_path: Path) -> None:
    async with opened_web(tmp_path) as web:
        assert await asked(web) == READY
        only_read(web.kit.app.gate.database)
        async with web.client() as client:
            new = {"collection": "apps", "data": {"a": 1}}
            refused = await client.post("/v1/tools/create_document", json=new)
        assert refused.status_code == 503
        status, body = await asked(web)
    assert (status, "database" in body["failing"]) == (503, True)


@STARTS_A_SERVER
@pytest.mark.usefixtures("at_once")
async def test_a_postgresql_that_became_read_only_is_not_ready(
    tmp_path: Path, postgres_database: str
) -> None:
    with psycopg.connect(postgres_database, autocommit=True) as operator:
        async with opened_web(tmp_path, database__url=postgres_database) as web:
            assert await asked(web) == READY
            for state, expected in (("on", 503), ("off", 200)):
                operator.execute(f"ALTER DATABASE room SET default_transaction_read_only = {state}")
                operator.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE pid <> pg_backend_pid() AND datname = 'room'"
                )
                with anyio.fail_after(PATIENT):
                    while (await asked(web))[0] != expected:
                        pass  # every question is a look of its own
            assert await asked(web) == READY


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("how", ["deleted", "replaced"])
async def test_a_database_file_that_is_gone_is_not_ready(tmp_path: Path, how: str) -> None:
    async with opened_web(tmp_path) as web:
        assert await asked(web) == READY
        file = tmp_path / "toolgate.db"
        if how == "deleted":
            file.unlink()
        else:
            copy = tmp_path / "copy.db"
            shutil.copy(file, copy)
            copy.replace(file)
        status, body = await asked(web)
    assert (status, "database" in body["failing"]) == (503, True)


@pytest.mark.usefixtures("at_once")
async def test_a_counter_store_that_is_dead_is_not_ready(tmp_path: Path) -> None:
    settings = {"limits__store": "async+redis://127.0.0.1:1", "limits__calls_per_minute": 600}
    async with opened_web(tmp_path, **settings) as web:
        async with web.client() as client:
            assert (await client.post("/v1/tools/list_collections")).status_code == 503
        assert await asked(web) == failing("counters")


@pytest.mark.usefixtures("at_once")
async def test_an_audit_that_cannot_be_stored_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened_web(tmp_path) as web:
        audit = web.kit.app.gate.audit
        broken = True

        def store(*_: Any) -> None:
            if broken:
                raise RuntimeError("no room")

        monkeypatch.setattr("toolgate.gate.audit.store_sealed", store)
        async with web.client() as client:
            await client.post("/v1/tools/list_collections")
            with pytest.raises(RuntimeError):
                await audit.flush()
            assert (await client.post("/v1/tools/list_collections")).status_code == 503
        assert await asked(web) == failing("audit")
        broken = False
        await audit.flush()
        assert await asked(web) == READY


@pytest.mark.usefixtures("at_once")
async def test_a_document_store_that_is_away_is_not_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(_: Any) -> None:
        raise RuntimeError("the project my-secret-project\nat length")

    monkeypatch.setattr(SqlDocuments, "check", away)
    async with opened_web(tmp_path) as web:
        assert await asked(web) == failing("documents")
    assert "my-secret-project" in caplog.text, "operators are told why, strangers are not"
    assert "Traceback" not in caplog.text


@pytest.mark.usefixtures("at_once")
async def test_blobs_that_cannot_be_kept_are_not_ready(tmp_path: Path) -> None:
    async with opened_web(tmp_path) as web:
        assert await asked(web) == READY, "no pack keeps any"
        folder = web.kit.app.settings.data / "blobs"
        web.kit.app.blobs.of("notes")
        assert await asked(web) == READY
        (folder / "notes").rmdir()
        assert await asked(web) == failing("blobs")
        (folder / "notes").mkdir()
        assert await asked(web) == READY


# What a question costs


class Parts:
    """A part that a test breaks, and a clock that it moves."""

    def __init__(self) -> None:
        self.now = 0.0
        self.tried = 0
        self.broken = False
        self.readiness = Readiness([ReadinessCheck("part", self.check, 5.0)], lambda: self.now)

    async def check(self) -> None:
        self.tried += 1
        if self.broken:
            raise RuntimeError("broken")


async def test_a_success_is_believed_for_a_while_however_often_somebody_asks() -> None:
    parts = Parts()
    for _ in range(1000):
        assert await parts.readiness.failing() == []
    assert parts.tried == 1
    parts.broken, parts.now = True, 5.0
    assert await parts.readiness.failing() == ["part"]
    assert parts.tried == 2


async def test_a_failure_is_tried_again_soon_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    parts = Parts()
    parts.broken = True
    with caplog.at_level(logging.INFO):
        for _ in range(100):
            assert await parts.readiness.failing() == ["part"]
        assert parts.tried == 1
        parts.broken, parts.now = False, AGAIN_SECONDS
        assert await parts.readiness.failing() == []
        assert await parts.readiness.failing() == []
    logged = [record.getMessage() for record in caplog.records]
    assert logged[0] == "not ready: part: broken"
    assert len(logged) == 2
    assert logged[1].startswith("ready again")


async def test_many_who_ask_at_once_share_one_check() -> None:
    parts = Parts()
    async with anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(parts.readiness.failing)
    assert parts.tried == 1


async def test_a_check_that_hangs_is_not_waited_for_nor_begun_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(readiness, "ANSWER_SECONDS", 0.01)
    thawed, tried = anyio.Event(), 0

    async def frozen() -> None:
        nonlocal tried
        tried += 1
        await thawed.wait()

    async def good() -> None:
        pass

    asked = Readiness([ReadinessCheck("database", frozen), ReadinessCheck("counters", good)])
    with anyio.fail_after(PATIENT):
        for _ in range(20):
            assert await asked.failing() == ["database"]
    assert tried == 1
    thawed.set()
    await anyio.wait_all_tasks_blocked()
    assert await asked.failing() == []


async def test_a_check_of_writing_commits_and_leaves_nothing(database_url: str) -> None:
    database = Database(database_url)
    await upgrade(database)
    commits = 0

    @event.listens_for(database._writer, "commit")
    def count(_: Any) -> None:
        nonlocal commits
        commits += 1

    health = DatabaseHealth(database)
    await health.check()
    await health.check_writing()
    rows = await database.read(lambda c: c.scalar(select(func.count()).select_from(write_checks)))
    await database.close()
    assert (commits, rows) == (1, 0)


async def test_a_check_of_writing_reaches_the_disk(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'toolgate.db'}")
    await upgrade(database)
    wal = tmp_path / "toolgate.db-wal"
    await database.write(lambda connection: connection.exec_driver_sql("SELECT 1"))
    before = wal.stat().st_size
    await DatabaseHealth(database).check_writing()
    after = wal.stat().st_size
    await database.close()
    assert after > before

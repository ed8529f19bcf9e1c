"""Workers over one database, and a clock that the tests own."""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio.lowlevel
import pytest
from sqlalchemy import Connection

from toolgate.db.engine import Database
from toolgate.db.upgrades import upgrade
from toolgate.gate.run_audit import note_run, words_of
from toolgate.workflows.declarations import RunRecord, Workflow
from toolgate.workflows.executor import WorkerOptions
from toolgate.workflows.runs import Runs
from toolgate.workflows.worker import Worker

LEASE = timedelta(seconds=30)


@dataclass
class Clock:
    now: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **duration: float) -> None:
        self.now += timedelta(**duration)


@dataclass
class Shop:
    """A database, what is declared, and as many workers as a test asks for."""

    database: Database
    clock: Clock
    declared: dict[str, Workflow[Any]]
    workers: list[Worker] = field(default_factory=list[Worker])
    off: dict[str, str] = field(default_factory=dict[str, str])
    """Why workflows wait, by their names."""

    def runs(self) -> Runs:
        async def pause(_seconds: float) -> None:
            await anyio.lowlevel.checkpoint()

        return Runs(self.database, self.declared, self.clock, pause, why_waiting=self.off.get)

    def worker(self, *, concurrency: int = 8, keep_days: int = 30) -> Worker:
        options = WorkerOptions(
            concurrency=concurrency,
            lease=LEASE,
            keep=timedelta(days=keep_days),
            note=note_run,
            describe=words_of,
        )
        worker = Worker(self.runs(), {"pack": "the world"}, options)
        self.workers.append(worker)
        return worker

    async def start(self, name: str, **options: Any) -> str:
        return await self.runs().of("pack").start_now(name, **options)

    async def done_by(self, worker: Worker) -> None:
        await worker.look()
        await worker.finished()

    async def record(self, id: str) -> RunRecord:
        return await self.runs().find(id)

    async def cancel(self, id: str) -> None:
        async with self.database.transaction() as tx:
            await self.runs().cancel(tx, id)

    async def retry(self, id: str) -> None:
        async with self.database.transaction() as tx:
            await self.runs().retry(tx, id)

    async def ask(self, look: Callable[[Connection], Any]) -> Any:
        return await self.database.read(look)


OpenShop = Callable[..., Shop]


@pytest.fixture
async def open_shop(database_url: str) -> AsyncGenerator[OpenShop]:
    database = Database(database_url)
    await upgrade(database)
    shops: list[Shop] = []

    def made(*workflows: Workflow[Any], clock: Clock | None = None) -> Shop:
        declared = {f"pack/{one.name}": one for one in workflows}
        shops.append(Shop(database, clock or Clock(), declared))
        return shops[-1]

    yield made
    for shop in shops:
        for worker in shop.workers:
            await worker.close()
    await database.close()

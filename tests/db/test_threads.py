"""A thread in the middle of a write is waited for, however its caller is cancelled."""

import asyncio
import threading

import pytest
from sqlalchemy import text
from tests.patience import PATIENT

from toolgate.db.engine import Database
from toolgate.db.threads import Threads

pytestmark = pytest.mark.anyio


async def test_a_cancelled_caller_waits_for_its_thread() -> None:
    threads = Threads(1, grace=60)
    begun, go_on = threading.Event(), threading.Event()
    finished: list[bool] = []

    def work() -> None:
        begun.set()
        go_on.wait(PATIENT)
        finished.append(True)

    caller = asyncio.create_task(threads.run(work))
    await asyncio.to_thread(begun.wait, PATIENT)
    caller.cancel()
    await asyncio.wait([caller], timeout=0.05)
    assert not caller.done()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert finished == [True]
    await threads.close()


async def test_a_write_cancelled_in_its_thread_leaves_no_lock(tmp_path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'one.db'}")
    await database.write(lambda c: c.execute(text("CREATE TABLE t (n INTEGER)")))
    begun, go_on = threading.Event(), threading.Event()

    def slow(connection) -> None:
        connection.execute(text("INSERT INTO t VALUES (1)"))
        begun.set()
        go_on.wait(PATIENT)

    caller = asyncio.create_task(database.write(slow))
    await asyncio.to_thread(begun.wait, PATIENT)
    caller.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await database.write(lambda c: c.execute(text("INSERT INTO t VALUES (2)")))
    rows = await database.read(lambda c: c.execute(text("SELECT n FROM t")).scalars().all())
    assert rows == [2]
    await database.close()

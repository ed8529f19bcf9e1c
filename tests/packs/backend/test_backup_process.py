"""The process that reads the database for a backup: it ends when it should, and says why."""

import gzip
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import orjson
import pytest
from tests.patience import PATIENT
from tests.processes import children_of, command_of, is_gone

from toolgate.backups import stored
from toolgate.backups.apart import PROCESS, ReadingFailed, read_apart
from toolgate.backups.archive import BadBackup
from toolgate.backups.reading_process import Order
from toolgate.backups.stored import PartSink, StoredBackups
from toolgate.packs.backend.world import BackendWorld
from toolgate.ports.documents import Create
from toolgate.testing import Kit, opened_kit
from toolgate.workflows.runs import Workflows

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc"),
]
SECRET = "a-password-of-tests"


@pytest.fixture
async def order(tmp_path: Path, database_url: str) -> Order:
    """A database with a megabyte that hardly can be packed."""
    async with used(tmp_path, database_url) as kit:
        documents = kit.app.documents.of("backend")
        async with kit.app.gate.database.transaction() as tx:
            some = [Create("t", f"d{one}", {"x": os.urandom(5000).hex()}) for one in range(100)]
            await documents.write(tx, *some)
    return Order(database_url)


async def test_a_run_whose_process_was_killed_is_tried_again(
    tmp_path: Path, order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "PART_BYTES", 1000)
    put, killed = PartSink._put, list[int]()  # pyright: ignore[reportPrivateUsage]

    async def killing(sink: PartSink, part: bytes) -> None:
        if not killed:
            killed.extend(readers())
            os.kill(killed[0], signal.SIGKILL)
        await put(sink, part)

    monkeypatch.setattr(PartSink, "_put", killing)
    async with used(tmp_path, order.database_url) as kit:
        answer = await kit.call("create_backup")
        assert answer.status == 200, answer.text
        backups = StoredBackups(kit.app.blobs.of("backend"))
        assert [one.name for one in await backups.whole()] == [answer.body["name"]]
        assert await backups.unfinished() == []
        (run,) = await runs_of(kit).list()
        assert run.attempts == 2
    assert killed


async def test_a_run_that_is_cancelled_leaves_no_process_and_no_backup(
    tmp_path: Path, order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "PART_BYTES", 1000)
    processes: set[int] = set()

    async def cancelling(_sink: PartSink, _part: bytes) -> None:
        if not processes:
            processes.update(readers())
            (run,) = await runs_of(kit).list()
            async with kit.app.gate.database.transaction() as tx:
                await runs_of(kit).runs.cancel(tx, run.id)

    monkeypatch.setattr(PartSink, "_put", cancelling)
    async with used(tmp_path, order.database_url) as kit:
        answer = await kit.call("create_backup")
        assert answer.body["error"] == "The backup was cancelled. Call again to make another."
        assert await StoredBackups(kit.app.blobs.of("backend")).whole() == []
    (process,) = processes
    assert is_gone(process)


async def told_nothing(_done: int, _total: int) -> None:
    """Whoever does not ask how far it has come."""


async def read(order: Order, take: Callable[[bytes], Awaitable[None]]) -> dict[str, object]:
    with anyio.fail_after(PATIENT):
        return await read_apart(order, take, told_nothing)


async def test_the_file_comes_whole_and_the_process_is_gone(order: Order) -> None:
    pieces: list[bytes] = []
    processes: set[int] = set()

    async def take(data: bytes) -> None:
        processes.update(readers())
        pieces.append(data)

    told = await read(order, take)
    lines = gzip.decompress(b"".join(pieces)).splitlines()
    assert orjson.loads(lines[-1])["tables"] == told["tables"]
    (process,) = processes
    assert is_gone(process)


async def test_the_address_is_not_among_its_arguments(order: Order) -> None:
    seen: list[str] = []

    async def take(_: bytes) -> None:
        seen.extend(command_of(one) for one in readers())

    await read(order, take)
    assert seen
    assert not [one for one in seen if "toolgate.db" in one or "://" in one]


async def test_one_that_is_killed_is_told(order: Order) -> None:
    async def take(_: bytes) -> None:
        for one in readers():
            os.kill(one, signal.SIGKILL)

    with pytest.raises(ReadingFailed, match=r"ended too early \(signal 9\)"):
        await read(order, take)


async def test_whoever_wants_no_more_leaves_no_process(order: Order) -> None:
    processes: set[int] = set()
    with anyio.CancelScope() as scope:

        async def take(_: bytes) -> None:
            processes.update(readers())
            scope.cancel()
            await anyio.sleep_forever()

        await read(order, take)
    (process,) = processes
    assert is_gone(process)


async def test_an_error_of_who_takes_the_bytes_comes_back_and_leaves_no_process(
    order: Order,
) -> None:
    processes: set[int] = set()

    async def take(_: bytes) -> None:
        processes.update(readers())
        raise LookupError("the store is full")

    with pytest.raises(LookupError, match="the store is full"):
        await read(order, take)
    (process,) = processes
    assert is_gone(process)


async def test_a_database_that_does_not_answer_is_told_without_its_address() -> None:
    nobody = Order(f"postgresql+psycopg://someone:{SECRET}@127.0.0.1:1/none")
    with pytest.raises(ReadingFailed) as failed:
        await read(nobody, told_bytes)
    assert str(failed.value).startswith("The database did not answer")
    assert SECRET not in str(failed.value)


async def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    file = tmp_path / "gone.db"
    with pytest.raises(BadBackup, match="is not there"):
        await read(Order(f"sqlite:///{file}"), told_bytes)
    assert not file.exists()


def used(data: Path, url: str) -> AbstractAsyncContextManager[Kit]:
    return opened_kit(data, packs__enabled=["backend"], database__url=url)


def runs_of(kit: Kit) -> Workflows:
    world: BackendWorld = kit.app.worlds["backend"].world
    return world.backups.site.workflows


async def told_bytes(_: bytes) -> None:
    """Whoever looks at none of them."""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_it_ends_with_its_input_and_not_by_a_signal_to_the_server(
    order: Order, number: signal.Signals
) -> None:
    await anyio.to_thread.run_sync(ended_by_its_input, order, number)


def ended_by_its_input(order: Order, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(orjson.dumps(order._asdict()) + b"\n")
        process.stdin.flush()
        assert process.stdout.read(1) == b"D"  # it has begun, and waits for who reads the rest
        process.send_signal(number)
        more = 200_000  # than a pipe holds: it goes on writing
        assert len(process.stdout.read(more)) == more
        process.stdin.close()
        assert process.wait(PATIENT) == 1


def readers() -> list[int]:
    """The processes of this one that read a database."""
    return [one for one in children_of(os.getpid()) if PROCESS in command_of(one)]

"""A campaign is interrupted after every single step, and goes on: nobody gets a message twice.

Who was handed over at that very moment may get none: nothing can be asked about it afterwards.
"""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from toolgate.db.transactions import Transaction
from toolgate.packs.backend.marketing import sending
from toolgate.packs.backend.marketing.deliveries import Addressee, Queued, Settled, State
from toolgate.packs.backend.marketing.journal import Journal
from toolgate.packs.backend.marketing.sending import Channel, Page, Sender, ServerAway
from toolgate.packs.backend.sql.deliveries import SqlDeliveries
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

PEOPLE = [f"p{number}@example.com" for number in range(7)]


class Killed(BaseException):
    """The process ends here."""


@dataclass
class World:
    """A mail server, people, and a moment at which everything ends."""

    ends_after: int | None = None
    steps: int = 0
    got: Counter[str] = field(default_factory=Counter[str])
    revoked: set[str] = field(default_factory=set[str])
    away: bool = False
    state: dict[str, Any] = field(default_factory=dict[str, Any])

    def step(self) -> None:
        self.steps += 1
        if self.ends_after is not None and self.steps >= self.ends_after:
            raise Killed

    def channel(self) -> Channel:
        return Channel(self._page, self._refused, self._send, at_once=2)

    async def _page(self, after: Any) -> Page:
        first = int(after or 0)
        some = [Addressee(one) for one in PEOPLE[first : first + 4]]
        # The same person once more: only one message may come of it.
        return Page([*some, Addressee(PEOPLE[0])], first + 4 if first + 4 < len(PEOPLE) else None)

    async def _refused(self, people: Sequence[Addressee]) -> set[str]:
        return {one.address for one in people} & self.revoked

    async def _send(self, one: Queued, handing_over: Callable[[], None]) -> Settled:
        self.step()
        if self.away:
            raise ServerAway("away")
        handing_over()
        self.step()
        self.got[one.to.address] += 1
        self.step()
        return one.number, State.ACCEPTED, "250 ok"


@dataclass
class FakeRun:
    """A run whose checkpoints commit with what is stored beside them."""

    kit: Kit
    world: World

    @property
    def state(self) -> dict[str, Any]:
        return self.world.state

    @asynccontextmanager
    async def transaction(self) -> AsyncGenerator[Transaction]:
        self.world.step()
        before = self.world.state
        try:
            async with self.kit.app.gate.database.transaction() as tx:
                yield tx
        except BaseException:
            self.world.state = before
            raise
        self.world.step()

    async def checkpoint_in(self, tx: Transaction, state: dict[str, Any], **told: Any) -> None:
        self.world.state = state


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    async with opened_kit(tmp_path, packs__enabled=["backend"], database__url=database_url) as kit:
        yield kit


async def send(kit: Kit, world: World, campaign: str, folder: Path) -> dict[State, int]:
    deliveries = SqlDeliveries(kit.app.gate.database)
    journal, run = Journal(folder, campaign), FakeRun(kit, world)
    run_: Any = run
    try:
        return await Sender(run_, campaign, world.channel(), deliveries, journal).send()
    finally:
        journal.close()


def journals(folder: Path) -> list[Path]:
    return list(folder.glob("*.journal"))


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "BATCH", 3)


async def test_everybody_gets_one(kit: Kit, tmp_path: Path) -> None:
    world = World()
    assert await send(kit, world, "one", tmp_path) == {State.ACCEPTED: len(PEOPLE)}
    assert world.got == Counter(PEOPLE)
    assert journals(tmp_path) == []


async def test_whenever_it_is_killed_nobody_gets_two(kit: Kit, tmp_path: Path) -> None:
    whole = World()
    await send(kit, whole, "whole", tmp_path)
    for last in range(1, whole.steps + 1):
        world = World(ends_after=last)
        with pytest.raises(Killed):
            await send(kit, world, f"c{last}", tmp_path)
        world.ends_after = None
        counts = await send(kit, world, f"c{last}", tmp_path)
        assert max(world.got.values()) == 1, last
        missing = set(PEOPLE) - set(world.got)
        # Only whoever was handed over when it ended, and then that is told.
        assert len(missing) <= counts.get(State.UNKNOWN, 0) <= 1, last
        assert sum(counts.values()) == len(PEOPLE)


async def test_on_another_machine_nothing_is_sent_again(kit: Kit, tmp_path: Path) -> None:
    world = World(ends_after=12)
    with pytest.raises(Killed):
        await send(kit, world, "moved", tmp_path / "here")
    assert 0 < world.got.total() < len(PEOPLE)
    world.ends_after = None
    counts = await send(kit, world, "moved", tmp_path / "there")
    assert max(world.got.values()) == 1
    assert counts[State.UNKNOWN] >= 1


async def test_a_journal_of_an_older_batch_is_not_believed(kit: Kit, tmp_path: Path) -> None:
    journal = Journal(tmp_path, "x")
    journal.begin("first")
    for number, state in ((1, State.UNKNOWN), (2, State.UNKNOWN), (2, State.ACCEPTED)):
        journal.note(number, state)
    journal.close()
    assert Journal(tmp_path, "x").read("first") == {1: State.UNKNOWN, 2: State.ACCEPTED}
    assert Journal(tmp_path, "x").read("second") is None
    assert Journal(tmp_path, "y").read("first") is None


async def test_a_journal_that_another_process_still_has_is_not_believed(tmp_path: Path) -> None:
    """One that was frozen until its lease ended goes on handing over when it wakes."""
    frozen = Journal(tmp_path, "x")
    frozen.begin("first")
    frozen.note(1)
    other = Journal(tmp_path, "x")
    assert other.read("first") is None, "all of the batch is unknown"
    other.begin("second")
    frozen.note(2)
    other.close()
    assert Journal(tmp_path, "x").read("second") == {}, "each has a file of its own"
    frozen.close()


async def test_who_revokes_while_it_runs_is_skipped(kit: Kit, tmp_path: Path) -> None:
    world = World(ends_after=12)
    with pytest.raises(Killed):
        await send(kit, world, "revoked", tmp_path)
    world.ends_after, world.revoked = None, {PEOPLE[-1]}
    counts = await send(kit, world, "revoked", tmp_path)
    assert world.got[PEOPLE[-1]] == 0
    assert counts[State.SKIPPED] == 1


async def test_a_server_that_is_away_is_waited_for(kit: Kit, tmp_path: Path) -> None:
    world = World(away=True)
    with pytest.raises(ServerAway):
        await send(kit, world, "away", tmp_path)
    world.away = False
    assert await send(kit, world, "away", tmp_path) == {State.ACCEPTED: len(PEOPLE)}
    assert world.got == Counter(PEOPLE)

"""How a campaign is sent: a workflow that finds its recipients, then goes through them in batches.

Each message is handed over once, whatever crashes in between. Its recipient is stored first
(`Deliveries`), with the place up to which users were looked through; a batch is marked before it is
sent, and the journal says which of its messages were handed over when the process ended.
"""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from toolgate.db.transactions import Transaction
from toolgate.gate.errors import Unavailable
from toolgate.packs.backend.marketing.deliveries import (
    Addressee,
    Deliveries,
    Queued,
    Settled,
    State,
)
from toolgate.packs.backend.marketing.journal import Journal
from toolgate.ports.documents import Fields
from toolgate.workflows.declarations import Run

BATCH = 100
"""Messages for which consent is asked, and the database, at a time: who revokes it while a campaign
runs gets at most what is in the batch under way."""
AFTER_CRASH = "handed over when the server stopped: it may have been taken"


class ServerAway(Unavailable):
    """Nothing is taken at present; the campaign goes on later, from where it is.

    Its words are the error of the run.
    """


@dataclass(frozen=True, slots=True)
class Page:
    """Some of the people a campaign is for."""

    addressees: Sequence[Addressee]
    after: Any
    """Where the next page begins; None where this was the last."""


@dataclass(frozen=True, slots=True)
class Channel:
    """How messages of one campaign get to people: by mail or push."""

    page: Callable[[Any], Awaitable[Page]]
    """The people, page by page."""
    refused: Callable[[Sequence[Addressee]], Awaitable[set[str]]]
    """The addresses that must not be sent to, as of now."""
    send: Callable[[Queued, Callable[[], None]], Awaitable[Settled]]
    """Sends one message; tells right before it is handed over. Raises `ServerAway`."""
    at_once: int
    """Messages under way at a time."""
    tidy: Callable[[Transaction], Awaitable[None]] | None = None
    """What is to be stored with the outcomes of a batch."""


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends one campaign, in one run."""

    run: Run[Any]
    campaign: str
    channel: Channel
    deliveries: Deliveries
    journal: Journal
    collected: int | None = None
    """How many recipients there are, where they were found before: what was kept is sent later."""

    async def send(self) -> dict[State, int]:
        """Send what has not been sent yet; how many messages came to what."""
        if self.collected is None and self.run.state.get("after", "") is not None:
            await self._collect()
        await self._settle_interrupted()
        try:
            while batch := await self.deliveries.next(self.campaign, BATCH):
                await self._send_batch(batch)
        finally:
            self.journal.close()
        self.journal.remove()
        return dict(await self.deliveries.counts(self.campaign))

    async def _collect(self) -> None:
        """Store everybody the campaign is for, each address once."""
        state: dict[str, Any] = {"after": "", "total": 0} | self.run.state
        while state["after"] is not None:
            page = await self.channel.page(state["after"])
            first: int = state["total"]
            state = {"after": page.after, "total": first + len(page.addressees)}
            message = f"{state['total']} recipients found"
            async with self.run.transaction() as tx:
                await self.deliveries.add(tx, self.campaign, first, page.addressees)
                await self.run.checkpoint_in(tx, state, done=0, message=message)

    async def _settle_interrupted(self) -> None:
        """What was about to be sent when the process ended: handed over, or still to be sent."""
        begun = await self.deliveries.in_state(self.campaign, State.SENDING)
        if not begun:
            return
        known = self.journal.read(self.run.state.get("batch"))
        unread = State.UNKNOWN if known is None else State.WAITING
        states = {number: (known or {}).get(number, unread) for number in begun}
        settled: list[Settled] = [
            (number, state, AFTER_CRASH if state is State.UNKNOWN else None)
            for number, state in states.items()
        ]
        async with self.run.transaction() as tx:
            await self.deliveries.settle(tx, self.campaign, settled)

    async def _send_batch(self, batch: Sequence[Queued]) -> None:
        refused = await self.channel.refused([one.to for one in batch])
        left = [one for one in batch if one.to.address not in refused]
        state: dict[str, Any] = {**self.run.state, "batch": secrets.token_hex(8)}
        self.journal.begin(state["batch"])
        marked: list[Settled] = [
            (one.number, State.SKIPPED if one.to.address in refused else State.SENDING, None)
            for one in batch
        ]
        async with self.run.transaction() as tx:
            await self.deliveries.settle(tx, self.campaign, marked)
            # Raises where another worker has the run: then nothing is sent here.
            await self.run.checkpoint_in(tx, state)
        settled, away = await self._send_all(left)
        done, total = batch[-1].number + 1, state.get("total", self.collected)
        message = f"{done} of {total} messages"
        async with self.run.transaction() as tx:
            await self.deliveries.settle(tx, self.campaign, settled)
            if self.channel.tidy is not None:
                await self.channel.tidy(tx)
            await self.run.checkpoint_in(tx, state, done=done, total=total, message=message)
        if away is not None:
            raise away

    async def _send_all(self, batch: Sequence[Queued]) -> tuple[list[Settled], ServerAway | None]:
        """Send a batch; where the server goes away, the rest of it waits again."""
        settled: list[Settled] = []
        left = list(reversed(batch))
        away: ServerAway | None = None

        async def work() -> None:
            nonlocal away
            while left and away is None:
                one = left.pop()
                try:
                    note = partial(self.journal.note, one.number)
                    done = await self.channel.send(one, note)
                    self.journal.note(one.number, done[1])
                    settled.append(done)
                except ServerAway as problem:
                    away = problem
                    left.append(one)

        await _run_together([work() for _ in range(min(self.channel.at_once, len(batch)))])
        waiting: list[Settled] = [(one.number, State.WAITING, None) for one in left]
        return [*settled, *waiting], away


async def _run_together(work: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run these at the same time; where one fails, the others end before this does."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def told(counts: dict[State, int]) -> str:
    """How many messages came to what, in words."""
    return ", ".join(f"{counts[state]} {state.value}" for state in State if counts.get(state))


def has_succeeded(counts: dict[State, int]) -> bool:
    """Whether a campaign counts as sent: somebody got it, or nobody was to."""
    good = sum(counts.get(one, 0) for one in (State.ACCEPTED, State.KEPT, State.UNKNOWN))
    return bool(good) or not counts.get(State.REFUSED, 0)


def fill_in(text: str, brand: str, settings: Fields, now: datetime) -> str:
    """The text with its variables: `{brand.name}`, `{discount.code}`, `{date.month}` and others."""
    for name, value in _variables(brand, settings, now).items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _variables(brand: str, settings: Fields, now: datetime) -> dict[str, str]:
    data: Fields = settings.get("data") or {}
    content: Fields = data.get("content") or {}
    code = content.get("discountCode")
    return {
        "brand.name": brand,
        "date.month": f"{now:%B}",
        "date.year": f"{now:%Y}",
        "discount.code": code if isinstance(code, str) else "",
        "holiday.name": holiday(now),
    }


HOLIDAYS = {
    1: "New Year",
    2: "Valentine's Day",
    3: "Spring",
    4: "Easter",
    5: "May Day",
    6: "Summer",
    7: "Summer",
    8: "Back to School",
    9: "Autumn",
    10: "Halloween",
    11: "Black Friday",
    12: "Christmas",
}


def holiday(now: datetime) -> str:
    """What a sale in this month is named after."""
    return HOLIDAYS[now.month]

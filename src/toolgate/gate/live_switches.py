"""Switches that an operator turns while servers run; each of them knows within a second.

They are rows of one small table. Every change counts its `epoch` up, so one cheap statement tells
a worker whether there is something new. It is asked beside the calls, never by one.

Where the table cannot be read, what was known last holds, and writes are refused until it can be
read again: they might be what was just switched off.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import anyio
from sqlalchemy import Connection, func, insert, select, text, update

from toolgate.db.engine import Database
from toolgate.db.outages import Outage
from toolgate.db.prepared import PreparedStatement
from toolgate.db.tables import switches
from toolgate.gate.audit_records import timestamp
from toolgate.gate.catalogue import Catalogue
from toolgate.gate.epochs import Epoch
from toolgate.gate.errors import Unavailable
from toolgate.gate.operators import note_operator
from toolgate.gate.policy import Policy

logger = logging.getLogger(__name__)

SECONDS = 0.5
"""Between two looks: with the time that a look takes, less than a second."""
DISABLED = "disabled"
"""The row that lists what operators switched off; a pack that switches has one of its own."""
LOCK = 0x7001_6A80
NEWEST = PreparedStatement(select(func.max(switches.c.epoch).label("epoch")))


@dataclass(frozen=True, slots=True)
class SwitchedOff:
    """The tools and packs that are off, by the names they were switched off by."""

    names: frozenset[str] = frozenset()
    epoch: int = 0
    sources: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    """Who switched each off: `DISABLED` for operators, or a pack."""
    settings: Mapping[str, Sequence[str]] = field(
        default_factory=dict[str, Sequence[str]], compare=False
    )
    """The keys of the pack's settings that switched each off, where a pack did."""


async def pause_between_reads() -> None:
    """Between two looks."""
    await anyio.sleep(SECONDS)


class LiveSwitches:
    """Keeps a gate's policy at what the table says."""

    def __init__(
        self,
        database: Database,
        policy: Policy,
        catalogue: Catalogue,
        pause: Callable[[], Awaitable[None]] = pause_between_reads,
        epoch: Epoch | None = None,
    ) -> None:
        self._database = database
        self._policy = policy
        self._catalogue = catalogue
        self._pause = pause
        self._outage = Outage(logger, "Reading the switches")
        self._checking = anyio.Lock()
        self.known = SwitchedOff()
        self.epoch = epoch or Epoch()
        self.unread = False
        """Whether the table could not be read; writes are refused meanwhile."""

    async def check(self) -> None:
        """Raise `Unavailable` where it is not known what is switched off, nor to be found out."""
        if self.unread and not self._checking.locked():  # one tries; the others do not wait for it
            async with self._checking:
                await self.read_if_changed()
        if self.unread:
            raise Unavailable("The switches cannot be read, so nothing is written. Try again.")

    async def read(self) -> None:
        """Take what the table says; raises what the database raises."""
        self.known = await self._database.read(switched_off)
        self.epoch.number = self.known.epoch
        self._policy.disable(self.known.names)

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self._pause()
            try:
                await self.read_if_changed()
            except Exception:
                logger.exception("a change of the switches could not be announced")

    async def read_if_changed(self) -> bool:
        """Take what is new, and tell who listens; whether something was."""
        before = self.known.names
        try:
            row = await self._database.look_up(NEWEST, {})
            is_new = (row.epoch or 0) != self.known.epoch
            if is_new:
                async with self._database.time_limit():
                    await self.read()
        except Exception as problem:
            self.unread = True
            self._outage.note_failure(problem)
            return False
        self.unread = False
        self._outage.note_success()
        if self.known.names != before:
            names = ", ".join(sorted(self.known.names)) or "nothing"
            logger.warning("Switched off by an operator: %s.", names)
            await self._catalogue.announce()
        return is_new


def switched_off(connection: Connection, source: str | None = None) -> SwitchedOff:
    """What is off, according to the table: by whomever, or by one source alone."""
    rows = connection.execute(select(switches)).all()
    sources = {
        str(name): row.name
        for row in sorted(rows, key=lambda row: row.name != DISABLED)  # a pack's word is last
        if source is None or row.name == source
        for name in row.value
    }
    settings = {
        name: keys
        for row in rows
        if isinstance(row.value, dict) and source in (None, row.name)
        for name, keys in cast("dict[str, list[str]]", row.value).items()
    }
    epoch = max((row.epoch for row in rows), default=0)
    return SwitchedOff(frozenset(sources), epoch, sources, settings)


def switch(connection: Connection, name: str, *, off: bool) -> bool:
    """Switch a tool or a pack off, or on again, and audit it; False where it is so already."""
    _lock(connection)
    now = switched_off(connection, DISABLED)
    if (name in now.names) == off:
        return False
    store_switches(connection, DISABLED, now.names | {name} if off else now.names - {name})
    note_operator(connection, f"switch.{'off' if off else 'on'}:{name}")
    return True


def store_switches(
    connection: Connection, source: str, names: Iterable[str] | Mapping[str, Sequence[str]]
) -> None:
    """Store what one source switches off; every worker knows within a second.

    A pack says of each name by which of its settings.
    """
    _lock(connection)
    now = switched_off(connection)
    by_setting = cast("Mapping[str, Sequence[str]]", names)
    value = dict(by_setting) if isinstance(names, Mapping) else sorted(names)
    row = {"value": value, "epoch": now.epoch + 1, "changed_at": timestamp()}
    changed = update(switches).where(switches.c.name == source).values(row)
    if not connection.execute(changed).rowcount:
        connection.execute(insert(switches), [{"name": source, **row}])


def count_change(connection: Connection, source: str) -> None:
    """Let every worker know within a second that rules of this source have changed."""
    store_switches(connection, source, ())


def _lock(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":  # on SQLite, who writes is alone
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})

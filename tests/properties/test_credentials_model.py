"""Whatever happens to credentials, in whichever process: what is said of one was so a second ago.

The model remembers every state with its time. An answer has to be one that was true within the
last second, and a process that looks asks the database less often than it is asked.
"""

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, update
from tests.effort import effort

from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.db.engine import Database
from toolgate.db.tables import documents, keys
from toolgate.db.upgrades import upgrade
from toolgate.gate.audit_records import timestamp
from toolgate.gate.principal import Role
from toolgate.identity import credential_changes, credentials
from toolgate.identity.credentials import Credentials
from toolgate.identity.keys import Keys, NewKey
from toolgate.identity.users import Users
from toolgate.ports.documents import Set
from toolgate.ports.users import NAMESPACE, USERS

Answer = frozenset[str] | None
WHO = st.integers(0, 2)
STEPS = st.lists(
    st.tuples(st.sampled_from(["ask", "ask", "ask", "look", "record", "revoke", "delete"]), WHO)
    | st.tuples(st.just("pass"), st.sampled_from([0.1, 0.4, 0.7, 1.1]))
    | st.tuples(st.sampled_from(["fail", "clean", "here"]), WHO),
    max_size=40,
)


@dataclass
class Clock:
    now: float = 1_000.0

    def monotonic(self) -> float:
        return self.now


@dataclass
class Model:
    """What was true of each key, and from when on."""

    clock: Clock
    past: dict[int, list[tuple[float, Answer]]] = field(
        default_factory=dict[int, list[tuple[float, Answer]]]
    )

    def note(self, who: int, answer: Answer) -> None:
        self.past.setdefault(who, []).append((self.clock.now, answer))

    def now(self, who: int) -> Answer:
        return self.past[who][-1][1]

    def allowed(self, who: int) -> set[Answer]:
        """What held at some moment of the last second."""
        states = self.past[who]
        ends = [began for began, _ in states[1:]] + [self.clock.now + 1]
        return {
            one
            for (_, one), end in zip(states, ends, strict=True)
            if end > self.clock.now - credentials.REMEMBERED_SECONDS
        }


@dataclass
class World:
    """Two processes over one database, and three users with a key each."""

    here: Database
    there: Database
    model: Model
    made: list[NewKey] = field(default_factory=list[NewKey])
    admins: set[int] = field(default_factory=set[int])

    def __post_init__(self) -> None:
        self.keys = Keys(self.here)
        self.known = Credentials(
            self.here, self.keys, Users(SqlDocuments(self.here, NAMESPACE), self.here)
        )
        self.elsewhere = credential_changes.CredentialChanges(self.there)

    async def begin(self) -> None:
        for table in (keys, documents):
            await self.there.write(lambda c, table=table: c.execute(delete(table)))
        for who in range(3):
            self.made.append(await self.keys.create(role=Role.USER, user_id=f"u{who}"))
            self.model.note(who, frozenset({"user"}))

    async def step(self, what: str, given: Any) -> None:
        if what == "pass":
            self.model.clock.now += given
        else:
            await getattr(self, what)(given)

    async def ask(self, who: int) -> None:
        found = await self.known.holder(self.made[who].key)
        said = None if found is None else frozenset(one.value for one in found.roles)
        assert said in self.model.allowed(who)

    async def look(self, _: int) -> None:
        await self.known.changes.look()

    async def fail(self, _: int) -> None:
        with pytest.MonkeyPatch.context() as outage:
            outage.setattr(self.here, "look_up", None)
            await self.known.changes.look()

    async def clean(self, _: int) -> None:
        await self.elsewhere.look()
        await self.elsewhere.delete_seen()

    async def record(self, who: int) -> None:
        self.admins ^= {who}
        fields = {"roles": {"admin": who in self.admins}}
        async with self.there.transaction() as tx:
            await SqlDocuments(self.there, NAMESPACE).write(tx, Set(USERS, f"u{who}", fields))
        if self.model.now(who) is not None:
            roles = {"user", "admin"} if who in self.admins else {"user"}
            self.model.note(who, frozenset(roles))

    async def revoke(self, who: int) -> None:
        await self._end(who, update(keys).values(revoked_at=timestamp()))

    async def delete(self, who: int) -> None:
        await self._end(who, delete(keys))

    async def here_(self, who: int) -> None:
        if self.model.now(who) is not None:
            await self.keys.revoke(self.made[who].id)
            self.model.note(who, None)

    async def _end(self, who: int, statement: Any) -> None:
        mine = statement.where(keys.c.id == self.made[who].id)
        await self.there.write(lambda connection: connection.execute(mine))
        self.model.note(who, None)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in (credentials, credential_changes):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=made.monotonic))
    return made


@settings(
    max_examples=effort(25, 500),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
)
@given(steps=STEPS)
def test_an_answer_was_true_within_the_last_second(
    database_url: str, clock: Clock, steps: list[tuple[str, Any]]
) -> None:
    async def play() -> None:
        here, there = Database(database_url), Database(database_url)
        try:
            await upgrade(here)
            world = World(here, there, Model(clock))
            await world.begin()
            for what, given in steps:
                await world.step("here_" if what == "here" else what, given)
        finally:
            await here.close()
            await there.close()

    asyncio.run(play())

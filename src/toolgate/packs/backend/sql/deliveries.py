"""Recipients of campaigns, in the gate's database."""

from collections.abc import Mapping, Sequence

from sqlalchemy import Connection, bindparam, delete, func, select, update
from sqlalchemy.dialects import postgresql, sqlite

from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction
from toolgate.gate.audit_records import timestamp
from toolgate.packs.backend.marketing.deliveries import Addressee, Queued, Settled, State
from toolgate.packs.backend.sql.marketing_tables import deliveries

of_campaign = deliveries.c.campaign
CHANGE = (
    update(deliveries)
    .where(of_campaign == bindparam("of_campaign"), deliveries.c.number == bindparam("of_number"))
    .values(state=bindparam("state"), words=bindparam("words"), updated_at=bindparam("updated_at"))
)


class SqlDeliveries:
    """Reads and stores recipients of campaigns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self, tx: Transaction, campaign: str, first: int, addressees: Sequence[Addressee]
    ) -> None:
        """Store those that are not there yet, numbered from `first` on."""
        now = timestamp()
        rows = [
            {
                "campaign": campaign,
                "number": number,
                "address": one.address,
                "uid": one.uid,
                "name": one.name,
                "state": State.WAITING.value,
                "updated_at": now,
            }
            for number, one in enumerate(addressees, first)
        ]

        def insert(connection: Connection) -> None:
            dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
            new = dialect.insert(deliveries).on_conflict_do_nothing()
            connection.execute(new, rows)

        if rows:
            await tx.run(insert)

    async def kept(self) -> Sequence[str]:
        """The campaigns of which messages are kept in the outbox."""
        wanted = select(of_campaign).where(deliveries.c.state == State.KEPT.value).distinct()
        return await self._database.read(
            lambda one: list(one.scalars(wanted.order_by(of_campaign)))
        )

    async def release(self, tx: Transaction, campaign: str) -> int:
        """Let what was kept wait to be sent; how many recipients the campaign has."""
        kept = deliveries.c.state == State.KEPT.value
        change = update(deliveries).where(of_campaign == campaign, kept)
        last = select(func.max(deliveries.c.number)).where(of_campaign == campaign)

        def work(connection: Connection) -> int:
            connection.execute(change.values(state=State.WAITING.value, updated_at=timestamp()))
            return (connection.scalar(last) or 0) + 1

        return await tx.run(work)

    async def next(self, campaign: str, limit: int) -> Sequence[Queued]:
        """Those that wait, in their order."""
        table = deliveries.c
        waiting = (
            select(table.number, table.address, table.uid, table.name)
            .where(of_campaign == campaign, table.state == State.WAITING.value)
            .order_by(table.number)
            .limit(limit)
        )

        def look(connection: Connection) -> list[Queued]:
            return [
                Queued(row.number, Addressee(row.address, row.uid, row.name))
                for row in connection.execute(waiting)
            ]

        return await self._database.read(look)

    async def in_state(self, campaign: str, state: State) -> Sequence[int]:
        """The numbers of those in a state."""
        wanted = select(deliveries.c.number).where(
            of_campaign == campaign, deliveries.c.state == state.value
        )
        return await self._database.read(lambda connection: list(connection.scalars(wanted)))

    async def settle(self, tx: Transaction, campaign: str, settled: Sequence[Settled]) -> None:
        """Store what became of some."""
        now = timestamp()
        rows = [
            {
                "of_campaign": campaign,
                "of_number": number,
                "state": state.value,
                "words": words,
                "updated_at": now,
            }
            for number, state, words in settled
        ]
        if rows:
            await tx.run(lambda connection: connection.execute(CHANGE, rows))

    async def counts(self, campaign: str) -> Mapping[State, int]:
        """How many there are in each state."""
        counted = (
            select(deliveries.c.state, func.count())
            .where(of_campaign == campaign)
            .group_by(deliveries.c.state)
        )
        found = await self._database.read(lambda one: list(one.execute(counted)))
        return {State(state): number for state, number in found}

    async def prune(self, tx: Transaction, campaign: str) -> int:
        """Forget the recipients of a campaign; how many there were."""
        every = delete(deliveries).where(of_campaign == campaign)
        return await tx.run(lambda connection: connection.execute(every).rowcount)

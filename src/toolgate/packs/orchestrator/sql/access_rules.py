"""Access rules in the gate's database, kept in memory until an operator changes one."""

from collections.abc import Sequence
from typing import Any

import anyio
from sqlalchemy import Connection, select

from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction
from toolgate.gate.epochs import Epoch
from toolgate.gate.live_switches import count_change
from toolgate.packs.orchestrator.access_rules import AccessRule, Action, rule_of
from toolgate.packs.orchestrator.sql.tables import access_rules, members

SOURCE = "orchestrator.access_rules"
"""Whose changes these are, in the gate's table of switches."""


class SqlAccessRules:
    """The rules as this worker knows them; it learns of a change within a second."""

    def __init__(self, database: Database, epoch: Epoch) -> None:
        self._database = database
        self._epoch = epoch
        self._read_at: int | None = None
        self._rules: Sequence[AccessRule] = ()
        self._about: dict[tuple[Action, str], Sequence[AccessRule]] = {}
        self._reading = anyio.Lock()

    async def about(self, action: Action, resource: str) -> Sequence[AccessRule]:
        """The rules whose pattern fits a resource, in order of rank."""
        if self._read_at != self._epoch.number:
            await self._read()
        rules = self._about.get((action, resource))
        if rules is None:
            rules = self._about[action, resource] = [
                rule
                for rule in self._rules
                if rule.action == action and rule.pattern.fullmatch(resource)
            ]
        return rules

    async def groups_of(self, user_id: str) -> Sequence[str]:
        """The groups of a user."""
        wanted = select(members.c.group_id).where(members.c.user_id == user_id)
        return await self._database.read(lambda one: one.scalars(wanted).all(), quick=True)

    async def changed(self, tx: Transaction) -> None:
        """Let every worker read the rules again, once the transaction is committed."""
        await tx.run(_count)

    async def _read(self) -> None:
        async with self._reading:
            epoch = self._epoch.number
            if self._read_at == epoch:
                return
            rows = await self._database.read(_rows)
            self._rules = sorted((rule_of(row) for row in rows), key=lambda rule: rule.rank)
            self._about = {}
            self._read_at = epoch


def _rows(connection: Connection) -> Sequence[Any]:
    return connection.execute(select(access_rules)).mappings().all()


def _count(connection: Connection) -> None:
    count_change(connection, SOURCE)

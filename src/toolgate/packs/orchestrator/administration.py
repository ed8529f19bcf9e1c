"""What operators arrange for their agents: people, projects, tasks, jobs and access rules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from toolgate.db.transactions import Transaction
from toolgate.packs.orchestrator.rows import Row

Kind = Literal[
    "user",
    "group",
    "member",
    "project",
    "role_binding",
    "task",
    "dependency",
    "job",
    "access_rule",
    "change",
    "skill",
    "skill_version",
]
"""A kind of record; `change` is one in the history of a setting or preference."""

ScopeKind = Literal["user", "group", "project"]
"""What preferences, skills and access rules may be for, beside tasks."""


@dataclass(frozen=True, slots=True)
class RowPage:
    """Some records of one kind, in the order of that kind."""

    rows: Sequence[Row]
    next: Sequence[Any] | None
    """The position of the last, where others follow."""


class Administration(Protocol):
    """Every record of each kind; nothing is out of an operator's reach."""

    async def page(
        self, kind: Kind, where: Mapping[str, Any], after: Sequence[Any] | None, limit: int
    ) -> RowPage:
        """Records with these values, behind a position; fewer than `limit` if they are large."""
        ...

    async def find(self, tx: Transaction, kind: Kind, key: Mapping[str, Any]) -> Row | None:
        """One record, as the transaction sees it."""
        ...

    async def create(self, tx: Transaction, kind: Kind, row: Mapping[str, Any]) -> Row | None:
        """Store a new record; None where there is one of its key."""
        ...

    async def update(
        self, tx: Transaction, kind: Kind, key: Mapping[str, Any], values: Mapping[str, Any]
    ) -> Row | None:
        """Change a record; None where there is none."""
        ...

    async def is_agents_key(self, tx: Transaction, key_id: str) -> bool:
        """Whether an agent holds the key of this id."""
        ...

    async def revoke_keys(self, tx: Transaction, user_id: str) -> None:
        """End the keys of agents that work for a user."""
        ...

    async def forget_scope(self, tx: Transaction, kind: ScopeKind, scope_id: str) -> None:
        """Delete the access rules about a subject and the skills that are for it.

        Versions of the skills stay for some time.
        """
        ...

    async def delete(self, tx: Transaction, kind: Kind, key: Mapping[str, Any]) -> bool:
        """Delete a record; False where there is none. Raises `Conflict` where others need it."""
        ...

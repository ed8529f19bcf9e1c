"""Skills, as the tools ask for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from toolgate.db.transactions import Transaction
from toolgate.packs.orchestrator.access import Viewer
from toolgate.packs.orchestrator.vocabulary import SkillScope

SYSTEM_SKILL = "00000000-0000-4000-8000-000000000001"
"""The skill that says how agents work here; it is not stored, so nobody can change it."""

BY_OPERATOR = "quarantined_by_operator"
"""The category of a quarantine that an operator decided on, and only an operator lifts."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSkill:
    """A skill to be stored."""

    name: str
    content: str
    scope: SkillScope
    scope_id: str
    owner_id: str | None
    """None for one that an admin made for everybody, on a task without a user."""
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillChange:
    """What of a skill is changed; None stays as it is."""

    name: str | None = None
    content: str | None = None
    scope: SkillScope | None = None
    scope_id: str | None = None
    by: str


@dataclass(frozen=True, slots=True)
class SkillPage:
    """Some skills, the last changed first."""

    rows: Sequence[Row]
    more: bool


class Skills(Protocol):
    """Skills that are there for a user: its own, its groups', its projects' and everybody's."""

    async def get(self, viewer: Viewer, skill_id: str) -> Row | None:
        """One skill."""
        ...

    async def page(
        self,
        viewer: Viewer,
        scope: SkillScope | None,
        owner: str | None,
        after: tuple[str, str] | None,
        limit: int,
    ) -> SkillPage:
        """Skills without their content, the last changed first."""
        ...

    async def create(self, tx: Transaction, skill: NewSkill) -> Row:
        """Store a skill with its first version."""
        ...

    async def update(
        self, tx: Transaction, viewer: Viewer, skill_id: str, change: SkillChange
    ) -> Row | None:
        """Store the next version of a skill; None where there is none for this user.

        Another text lifts a quarantine, unless an operator decided on it.
        """
        ...

    async def delete(self, tx: Transaction, viewer: Viewer, skill_id: str) -> Row | None:
        """Delete a skill and keep its versions; None where there is none for this user."""
        ...

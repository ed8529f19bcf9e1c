"""Skills, as the tools ask for them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from toolgate.db.transactions import Transaction
from toolgate.packs.orchestrator.access import Viewer
from toolgate.packs.orchestrator.access_rules import DeniedProjects
from toolgate.packs.orchestrator.rows import ListPage, Row
from toolgate.packs.orchestrator.vocabulary import SkillScope

SYSTEM_SKILL = "00000000-0000-4000-8000-000000000001"
"""The skill that says how agents work here; it is not stored, so nobody can change it."""

BY_OPERATOR = "quarantined_by_operator"
"""The category of a quarantine that an operator decided on, and only an operator lifts."""

MAX_SKILLS, KEPT_VERSIONS, KEPT_OF_DELETED = 500, 20, 5
"""Skills of a scope; versions of a skill, and of one that was deleted."""
KEPT_OF_SCOPE = 1024 * 1024
"""Characters of deleted skills' versions that are kept of a scope; the oldest go first."""
SHARED_SCOPES = ("group", "project")
"""Where one user has at most half of the skills: others need room too."""
QUOTA = (
    f"A user, group or project, and everybody together, has at most {MAX_SKILLS} skills; one user "
    "at most half of those of a group or project."
)
KEPT_DAYS = 30
"""How long those of one that was deleted are kept."""


class QuarantinedText(Exception):
    """A text is not stored: an operator put a skill with it into quarantine."""

    def __init__(self, skill_id: str) -> None:
        super().__init__(skill_id)
        self.skill_id = skill_id


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSkill:
    """A skill to be stored."""

    name: str
    content: str
    digest: str
    """Of the content (`text_digests`)."""
    scope: SkillScope
    scope_id: str
    owner_id: str | None
    """None for one that an admin made for everybody, on a task without a user."""
    by: str
    limited: bool = True
    """Whether it needs room in its scope; what an admin stores does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillChange:
    """What of a skill is changed; None stays as it is."""

    name: str | None = None
    content: str | None = None
    digest: str | None = None
    """Of the content, where there is one."""
    scope: SkillScope | None = None
    scope_id: str | None = None
    by: str
    limited: bool = True
    """Whether it needs room in another scope; what an admin moves does not."""


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
        *,
        denied: DeniedProjects,
    ) -> ListPage:
        """Skills without their content, the last changed first; none of denied projects."""
        ...

    async def create(self, tx: Transaction, skill: NewSkill) -> Row:
        """Store a skill with its first version; raises `QuarantinedText`."""
        ...

    async def update(
        self, tx: Transaction, viewer: Viewer, skill_id: str, change: SkillChange
    ) -> Row | None:
        """Store the next version of a skill; None where there is none for this user.

        Another text lifts a quarantine, or another name where that is why; not if an operator
        decided on it. Raises `QuarantinedText`.
        """
        ...

    async def delete(self, tx: Transaction, viewer: Viewer, skill_id: str) -> Row | None:
        """Delete a skill and keep its versions; None where there is none for this user."""
        ...

    async def forget_deleted(self, before: str, most: int) -> int:
        """Forget some versions of skills that were deleted before a moment; how many it were."""
        ...

    async def quarantined_texts(self, digests: Collection[str]) -> Mapping[str, str]:
        """Of these texts, those that operators put into quarantine: as which skill, by digest."""
        ...

    async def refuse_text(self, tx: Transaction, digest: str, skill_id: str) -> None:
        """Let a skill's text be stored no more, as whichever skill."""
        ...

    async def allow_text(self, tx: Transaction, digest: str) -> None:
        """Let a text be stored again."""
        ...

    async def allow_texts_of(self, tx: Transaction, skill_id: str) -> bool:
        """The same for the texts of a skill that was deleted; False where there are none."""
        ...

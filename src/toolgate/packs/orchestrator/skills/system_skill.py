"""The skill that says how agents work here; it is not stored, so nobody can change it."""

from functools import cache
from importlib import resources
from typing import Any

from toolgate.packs.orchestrator.skills.store import SYSTEM_SKILL

NAME = "CyNodeAI interaction"
SINCE = "2026-01-01T00:00:00.000000Z"


def system_skill() -> dict[str, Any]:
    """The skill as it is listed."""
    return {
        "id": SYSTEM_SKILL,
        "name": NAME,
        "scope": "global",
        "scope_id": None,
        "owner": None,
        "version": 1,
        "quarantined": False,
        "updated_at": SINCE,
    }


@cache
def system_content() -> str:
    """What the system tells its agents."""
    folder = resources.files("toolgate.packs.orchestrator.skills")
    return (folder / "system_skill.md").read_text(encoding="utf-8")

"""Skills that nobody reads for now: what is shown and said of them, and what ends it."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from toolgate.gate.errors import PolicyViolation
from toolgate.gate.principal import Principal, Role
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.skills.store import BY_OPERATOR, QuarantinedText
from toolgate.packs.orchestrator.tools.skill_texts import refusal

WITHHELD_NAME = "Skill in quarantine"


def is_kept_for_name(row: Row) -> bool:
    """Whether a skill is in quarantine because of its name, so that another name lifts it."""
    quarantine = row.get("quarantine")
    return quarantine is not None and quarantine.get("field") == "name"


def shown_name(row: Row) -> str:
    """A skill's name; not where it may be why nobody reads the skill. Older notes do not say."""
    quarantine = row.get("quarantine")
    if quarantine is None or quarantine["category"] == BY_OPERATOR:
        return row["name"]
    return row["name"] if quarantine.get("field") == "content" else WITHHELD_NAME


def quarantined(
    principal: Principal, quarantine: Any, more: str = "nobody reads it"
) -> PolicyViolation:
    """What is said of a skill in quarantine; what was found in it is an admin's to read."""
    category = quarantine["category"]
    end = "its name is changed" if quarantine.get("field") == "name" else "its text is changed"
    if category == BY_OPERATOR:
        end = "an operator releases it"
    words = f"This skill is in quarantine until {end}; {more}"
    if Role.ADMIN in principal.roles:
        return refusal(quarantine, words)
    return PolicyViolation(f"{words} ({category}).", category=category)


@contextmanager
def refused_texts(*, tells_skill: bool) -> Generator[None]:
    """A text that an operator put into quarantine is refused; admins are told as which skill."""
    try:
        yield
    except QuarantinedText as known:
        words = "The skill was not stored: an operator put this text into quarantine"
        how = f"; operator.skill.release lifts it, of skill {known.skill_id}" if tells_skill else ""
        message = f"{words}, however it is spelled{how} ({BY_OPERATOR})."
        raise PolicyViolation(message, category=BY_OPERATOR) from None

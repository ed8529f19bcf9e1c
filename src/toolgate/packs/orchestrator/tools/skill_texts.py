"""A skill's name and text, examined: before they are stored, and when operators look again."""

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from toolgate.gate.errors import InvalidArguments, PolicyViolation, Problem, TooLarge
from toolgate.packs.orchestrator.long_texts import examine
from toolgate.packs.orchestrator.pack import secret_message
from toolgate.packs.orchestrator.secret_values import secret_in
from toolgate.packs.orchestrator.skills.content_audit import ContentAudit
from toolgate.packs.orchestrator.skills.store import BY_OPERATOR, QuarantinedText
from toolgate.packs.orchestrator.unseen_text import is_blank

MOST_BYTES = 256 * 1024


async def check_texts(audit: ContentAudit, name: str | None, content: str | None) -> None:
    """Raise where a name or text is not to be stored; None is not looked at."""
    if content is not None:
        _check_size(content)
        if await examine(len(content), lambda: is_blank(content)):
            _refuse("value", "content must have something to read: nothing of it is seen")
        if secret := await _secret_in(content):
            _refuse("secret", secret_message("content", secret))
    for field, text in (("name", name), ("content", content)):
        if text is not None and (found := await audit.read(text)):
            told = {"category": found.category, "triggering_text": found.text}
            raise refusal(told, f"The skill was not stored: its {field} was refused")


async def finding_in(audit: ContentAudit, text: str) -> dict[str, str] | None:
    """What would be refused of a stored text today; of a secret, only its kind."""
    if secret := await _secret_in(text):
        return {"category": "secret", "triggering_text": secret}
    if found := await audit.read(text):
        return {"category": found.category, "triggering_text": found.text}
    return None


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


def quarantined(found: Mapping[str, Any], more: str, *, tells_text: bool) -> PolicyViolation:
    """What is said of a skill in quarantine; what was found in it is an admin's to read."""
    category = found["category"]
    end = "an operator releases it" if category == BY_OPERATOR else "its text is changed"
    words = f"This skill is in quarantine until {end}; {more}"
    if tells_text:
        return refusal(found, words)
    return PolicyViolation(f"{words} ({category}).", category=category)


def refusal(found: Mapping[str, Any], words: str) -> PolicyViolation:
    """The error that names what was found."""
    return PolicyViolation(f"{words} ({found['category']}: {found['triggering_text']!r}).", **found)


def _check_size(content: str) -> None:
    """Before anything else: how long all the rest takes depends on it."""
    size = len(content.encode())
    if size > MOST_BYTES:
        raise TooLarge(f"content has {size} bytes; at most {MOST_BYTES} are kept. Send less.")


async def _secret_in(text: str) -> str | None:
    return await examine(len(text), lambda: secret_in("", text))


def _refuse(rule: str, message: str) -> None:
    raise InvalidArguments([Problem("content", rule, message)])

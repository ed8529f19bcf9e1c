"""A skill's name and text, examined: before they are stored, and when operators look again."""

from collections.abc import Mapping
from typing import Any

from toolgate.gate.errors import InvalidArguments, PolicyViolation, Problem, TooLarge
from toolgate.packs.orchestrator.long_texts import examine
from toolgate.packs.orchestrator.pack import secret_message
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.secret_values import secret_in
from toolgate.packs.orchestrator.skills.content_audit import ContentAudit, Finding
from toolgate.packs.orchestrator.skills.text_digests import text_digest
from toolgate.packs.orchestrator.unseen_text import is_blank

MAX_BYTES = 256 * 1024
Noted = dict[str, Any]
"""A category, the text that is why, and where it stands: its field, and the line of a content."""


async def check_texts(
    caller: str, audit: ContentAudit, name: str | None, content: str | None
) -> str:
    """Raise where a name or text is not to be stored; None is not looked at.

    Returns what the text is known by (`text_digests`): all that takes time is one examination.
    """
    if content is not None:
        _check_size(content)
    size = len(name or "") + len(content or "")
    return await examine(caller, size, lambda: _checked(audit, name, content))


def _checked(audit: ContentAudit, name: str | None, content: str | None) -> str:
    if content is not None:
        if is_blank(content):
            _refuse("value", "content must have something to read: nothing of it is seen")
        if secret := secret_in("", content):
            _refuse("secret", secret_message("content", secret))
    if found := _finding(audit, name, content):
        field = found.pop("field")
        raise refusal(found, f"The skill was not stored: its {field} was refused")
    return text_digest(content or "")


async def read_again(caller: str, audit: ContentAudit, row: Row) -> tuple[str, Noted | None]:
    """What a stored skill's text is known by, and what would be refused of it or its name today."""
    name, content = row["name"], row["content"]

    def look() -> tuple[str, Noted | None]:
        secret = _secret(name=name, content=content)
        return text_digest(content), secret or _finding(audit, name, content)

    return await examine(caller, len(name) + len(content), look)


def _secret(**fields: str) -> Noted | None:
    """In which field a secret is; of it, only its kind is told."""
    for field, text in fields.items():
        if secret := secret_in("", text):
            return {"category": "secret", "triggering_text": secret, "field": field}
    return None


def _finding(audit: ContentAudit, name: str | None, content: str | None) -> Noted | None:
    """What is refused of a name, a text, or the two read as one."""
    for field, text in (("name", name), ("content", content)):
        if text is not None and (found := audit.examine(text)):
            return _noted(found, field)
    if name is not None and content is not None and (found := audit.examine_both(name, content)):
        return _noted(found, "name")
    return None


def _noted(found: Finding, field: str) -> Noted:
    place = {"category": found.category, "triggering_text": found.text, "field": field}
    return {**place, "line": found.line} if field == "content" else place


def refusal(found: Mapping[str, Any], words: str) -> PolicyViolation:
    """The error that names what was found."""
    line = f", line {found['line']}" if "line" in found else ""
    what = f"{found['category']}: {found['triggering_text']!r}{line}"
    return PolicyViolation(f"{words} ({what}).", **found)


def _check_size(content: str) -> None:
    """Before anything else: how long all the rest takes depends on it."""
    size = len(content.encode())
    if size > MAX_BYTES:
        raise TooLarge(f"content has {size} bytes; at most {MAX_BYTES} are kept. Send less.")


def _refuse(rule: str, message: str) -> None:
    raise InvalidArguments([Problem("content", rule, message)])

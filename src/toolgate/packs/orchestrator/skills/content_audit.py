"""Looks at a skill before agents read it: hidden text, orders to forget others, grabs at secrets.

It reads the text as a model would. What a text says *about* such orders is none: a phrase that is
negated, or quoted where the text speaks of attacks, is passed over. No list of phrases is complete;
this one keeps out the usual, and names what it found.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from toolgate.packs.orchestrator.skills.hidden_text import hidden_in
from toolgate.packs.orchestrator.skills.patterns import DEFAULT_PATTERNS, LINE_PATTERNS, Category
from toolgate.packs.orchestrator.skills.plain_text import decoded, plain, plain_lines

MOST_SHOWN = 200

LINES: list[tuple[Category, re.Pattern[str]]] = [
    (category, re.compile(pattern, re.MULTILINE)) for category, pattern in LINE_PATTERNS
]
NEGATION = re.compile(
    r"(?:\b(?:never|not|don't|do not|cannot|can't|must not|mustn't|should not|shouldn't|won't|"
    r"will not|refuse to|avoid|without|nobody may|no one may|instead of)\b[^.!?;:]{0,40})$"
)
SPEAKS_OF = re.compile(
    r"\b(?:inject\w*|attack\w*|phrases?|examples?|e\.g\.|such as|patterns?|detect\w*|suspicious|"
    r"malicious|untrusted|attempts?|refus\w*|reject\w*|flags?|jailbreak\w*|warn\w*|quot\w+|"
    r"text that says|if (?:a|the|any) \w+ (?:says|asks|tells|contains))\b"
)
QUOTED_BEFORE = re.compile(r"(?:[\"'`(\[]|\b(?:says|like|as):?) ?$")


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found in a text."""

    category: Category
    text: str
    """The piece that triggered it."""


class ContentAudit:
    """Looks for the patterns that are in force."""

    def __init__(self, more: Mapping[Category, Iterable[str]] | None = None) -> None:
        self._patterns: list[tuple[Category, re.Pattern[str]]] = [
            (category, re.compile(pattern, re.IGNORECASE))
            for patterns in (DEFAULT_PATTERNS, more or {})
            for category, some in patterns.items()
            for pattern in some
        ]

    def examine(self, text: str) -> Finding | None:
        """The first finding, or None for a text that is fit to be read."""
        if hidden := hidden_in(text):
            return Finding("hidden_instructions", hidden[:MOST_SHOWN])
        found = self._phrase(plain(text)) or _line_in(text)
        if found is not None:
            return found
        for content in decoded(text):
            if inner := self._phrase(plain(content)):
                return Finding("hidden_instructions", inner.text)
        return None

    def _phrase(self, text: str) -> Finding | None:
        for category, pattern in self._patterns:
            for found in pattern.finditer(text):
                if not _is_spoken_of(text, found):
                    return Finding(category, found[0].strip()[:MOST_SHOWN])
        return None


def _line_in(text: str) -> Finding | None:
    """The first line that begins like one of a conversation with a model."""
    lines = plain_lines(text)
    for category, pattern in LINES:
        if found := pattern.search(lines):
            return Finding(category, found[0].strip()[:MOST_SHOWN])
    return None


def _is_spoken_of(text: str, found: re.Match[str]) -> bool:
    """Whether the phrase is forbidden there, or quoted as an example, rather than meant."""
    before = text[max(0, found.start() - 160) : found.start()]
    if NEGATION.search(before):
        return True
    return bool(QUOTED_BEFORE.search(before) and SPEAKS_OF.search(before))

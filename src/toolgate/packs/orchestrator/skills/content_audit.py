"""Looks at a skill before agents read it: hidden text, orders to forget others, grabs at secrets.

It reads the text as a model would. What a text says *about* such orders is none: a phrase that is
negated, or quoted where the text speaks of attacks, is passed over. No list of phrases is complete;
this one keeps out the usual, and names what it found.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from toolgate.packs.orchestrator.long_texts import examine, matches
from toolgate.packs.orchestrator.skills.hidden_text import hidden_in
from toolgate.packs.orchestrator.skills.patterns import DEFAULT_PATTERNS, LINE_PATTERNS, Category
from toolgate.packs.orchestrator.skills.plain_text import (
    decoded,
    plain,
    plain_lines,
    rotated_back,
    with_letters,
    without_markup,
)

MOST_SHOWN = 200
MOST_BEFORE = 160

LINES: list[tuple[Category, re.Pattern[str]]] = [
    (category, re.compile(pattern, re.MULTILINE)) for category, pattern in LINE_PATTERNS
]
NEGATION = re.compile(
    r"\b(?:never|not|cannot|don't|can't|mustn't|shouldn't|won't|nor|refuses? to|declines? to) "
    r"(?:(?:ever|to|try to|attempt to|allowed to|permitted to|be used to|help \w{1,20} to) "
    r"|(?:(?!mind|worry|hesitat|stop|wait|forget|fail|delay|doubt|fear)\w{1,20},? ){1,3}n?or "
    r"|(?:let|allow) (?:[\w']{1,20} ){1,4}(?:make|have|tell|trick|talk) you (?:to |into )?)?$"
)
"""It counts directly before the verb, or before a row of verbs that ends in "or"."""
CONDITION = re.compile(
    r"\b(?:why (?:(?:do|did|would|should) (?:you |we )?|(?:you|we) )?|"
    r"(?:if|unless|whether|until) (?:you|we|i) (?:(?:did|do|have|had|would|should) )?(?:still )?)$"
)
"""Before a negation: "why not …" and "if you did not … yet" forbid nothing."""
SPEAKS_OF = re.compile(
    r"\b(?:inject\w*|attack\w*|phrases?|examples?|e\.g\.|such as|patterns?|detect\w*|suspicious|"
    r"malicious|untrusted|attempts?|refus\w*|reject\w*|flags?|jailbreak\w*|warn\w*|quot\w+|"
    r"text that says|if (?:a|the|any) \w+ (?:says|asks|tells|contains))\b"
)
QUOTED_BEFORE = re.compile(r"(?:[\"'`(\[]|\b(?:says|like|as):?) ?$")
MEANT_AFTER = re.compile(
    r"[^\"'`)\].]{0,60}[.!]?[\"'`)\]]{1,2},? (?:is|are|applies|apply|describes?) "
    r"(?:exactly |now |just )?(?:what|how|to|your|the rules?|now) ?(?:you|we|it|applies|do)\b"
)
"""An "example" that the reader is told to follow."""


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

    async def read(self, text: str) -> Finding | None:
        """Examine a text; a long one in a thread, since others wait for the event loop."""
        return await examine(len(text), lambda: self.examine(text))

    def examine(self, text: str) -> Finding | None:
        """The first finding, or None for a text that is fit to be read."""
        if hidden := hidden_in(text):
            return Finding("hidden_instructions", hidden[:MOST_SHOWN])
        for one in _readings(text):
            if found := self._phrase(one):
                return found
        if found := _line_in(text):
            return found
        for content in decoded(text):
            for one in _readings(content):
                if inner := self._phrase(one):
                    return Finding("hidden_instructions", inner.text)
        return None

    def _phrase(self, text: str) -> Finding | None:
        for category, pattern in self._patterns:
            for found in matches(pattern, text):
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


def _readings(text: str) -> Iterator[str]:
    """The ways in which a text can be read."""
    whole = plain(text)
    yield whole
    for other in (with_letters(whole), rotated_back(whole)):
        if other is not None:
            yield other
    if (bare := without_markup(text)) is not None:
        yield plain(bare)


def _is_spoken_of(text: str, found: re.Match[str]) -> bool:
    """Whether the phrase is forbidden there, or quoted as an example, rather than meant."""
    before = text[max(0, found.start() - MOST_BEFORE) : found.start()]
    before = without_markup(before) or before
    if negation := NEGATION.search(before):
        return CONDITION.search(before, 0, negation.start()) is None
    if not (QUOTED_BEFORE.search(before) and SPEAKS_OF.search(before)):
        return False
    return MEANT_AFTER.match(text, found.end()) is None

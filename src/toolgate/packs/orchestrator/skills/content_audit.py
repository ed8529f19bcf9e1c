"""Looks at a skill before agents read it: hidden text, orders to forget others, grabs at secrets.

It reads the text as a model would. What a text says *about* such orders is none: a phrase that is
negated, or quoted where the text speaks of attacks, is passed over. No list of phrases is complete;
this one keeps out the usual, and names what it found, in the author's words.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from toolgate.packs.orchestrator.long_texts import matches
from toolgate.packs.orchestrator.skills.encodings import decoded
from toolgate.packs.orchestrator.skills.grammar import Category, Sentences
from toolgate.packs.orchestrator.skills.hidden_text import hidden_in
from toolgate.packs.orchestrator.skills.patterns import DEFAULT_PATTERNS, LINE_PATTERNS
from toolgate.packs.orchestrator.skills.plain_text import (
    LINES,
    TAG,
    Span,
    after,
    origin_of,
    readings,
)
from toolgate.packs.orchestrator.unseen_text import shown

MAX_SHOWN = 200
MAX_BEFORE = 160
MAX_AFTER_NAME = 500
"""Of a text, as far as it goes on from its name."""

OF_LINES: list[tuple[Category, re.Pattern[str]]] = [
    (category, re.compile(pattern, re.MULTILINE)) for category, pattern in LINE_PATTERNS
]
MARKS = re.compile(r"[\"`()\[\]#>*]+ ?")
NO = (
    r"(?:never|not|cannot|don't|can't|mustn't|shouldn't|won't|nor|refuses? to|declines? to|"
    r"forbidden to|(?:nobody|no one|none of (?:us|you|them)) (?:can|may|must|should|will|could))"
)
NEGATION = re.compile(
    rf"\b{NO} "
    r"(?:(?:ever|to|try to|attempt to|allowed to|permitted to|be used to|help \w{1,20} to) "
    r"|(?:(?!mind|worry|hesitat|stop|wait|forget|fail|delay|doubt|fear)\w{1,20},? ){1,3}n?or "
    r"|(?:let|allow) (?:[\w']{1,20} ){1,4}(?:make|have|tell|trick|talk) you (?:to |into )?)?$"
)
"""It counts directly before the verb, or before a row of verbs that ends in "or"."""
SECOND_NEGATION = re.compile(rf"\b{NO} (?:ever |to )?$")
"""Before a negation: the two cancel each other."""
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
    """The piece that triggered it, as its author wrote it; what has no shape is named."""
    line: int
    """On which line it begins, from 1."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The same, and where it stands."""

    category: Category
    span: Span


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
        found = self._find(text)
        return None if found is None else _told(text, found)

    def examine_both(self, name: str, content: str) -> Finding | None:
        """What only the two together say: a text that goes on from its name."""
        both = f"{name}\n{content[:MAX_AFTER_NAME]}"
        found = self._read(both)
        return None if found is None else _told(both, found)

    def _find(self, text: str) -> _Found | None:
        if hidden := hidden_in(text):
            return _Found("hidden_instructions", hidden)
        if found := self._read(text) or _line_in(text):
            return found
        for layer in decoded(text):
            if inner := self._read(layer.text):
                return _Found("hidden_instructions", layer.origin_of(inner.span))
        return None

    def _read(self, text: str) -> _Found | None:
        for one in readings(text):
            for category, start, end in self._phrases(one.text):
                if not _is_spoken_of(one.text, start, end):
                    return _Found(category, origin_of(text, one.steps, (start, end)))
        return None

    def _phrases(self, text: str) -> Iterator[tuple[Category, int, int]]:
        yield from Sentences(text).orders()
        for category, pattern in self._patterns:
            for found in matches(pattern, text):
                yield category, *found.span()


def _told(text: str, found: _Found) -> Finding:
    start, end = found.span
    literal = shown(text[start : min(end, start + MAX_SHOWN)]).strip()
    return Finding(found.category, literal, text.count("\n", 0, start) + 1)


def _line_in(text: str) -> _Found | None:
    """The first line that begins like one of a conversation with a model."""
    lines = after(text, LINES)
    for category, pattern in OF_LINES:
        if found := pattern.search(lines):
            return _Found(category, origin_of(text, LINES, found.span()))
    return None


def _is_spoken_of(text: str, start: int, end: int) -> bool:
    """Whether the phrase is forbidden there, or quoted as an example, rather than meant."""
    before = text[max(0, start - MAX_BEFORE) : start]
    unmarked = MARKS.sub("", TAG.sub("", before))
    if negation := NEGATION.search(unmarked):
        if SECOND_NEGATION.search(unmarked, 0, negation.start()):
            return False
        return CONDITION.search(unmarked, 0, negation.start()) is None
    if not (QUOTED_BEFORE.search(before) and SPEAKS_OF.search(before)):
        return False
    return MEANT_AFTER.match(text, end) is None

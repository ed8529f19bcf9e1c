"""Text as it is read, whatever it is spelled with: look-alike letters, entities, markup, gaps.

A reading is a row of steps, each a substitution. Each costs what the text's length says: patterns
neither nest nor overlap. Where something is found in a reading, the same steps say from where in
the author's text it came (`origin_of`).
"""

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from toolgate.packs.orchestrator.skills.grammar import is_word_that_matters
from toolgate.packs.orchestrator.skills.look_alikes import as_latin

Replacement = str | Callable[[re.Match[str]], str]
Step = tuple[re.Pattern[str], Replacement] | Mapping[int, int]
"""What is replaced by what; or a table of characters, one for one."""
Span = tuple[int, int]

LEADING_ZEROS = re.compile(r"(&#[xX]?)0+")
TOO_LARGE = re.compile(r"&#(?:[0-9]{8,}+|[xX][0-9a-fA-F]{7,}+);?")
NO_ASCII = re.compile(r"[^\x00-\x7f]")
ENTITY = re.compile(r"&(?:#[0-9]++|#[xX][0-9a-fA-F]++|[^\t\n\f <&#;]{1,32}+);?")
LOWER = {ord(one): ord(one.lower()) for one in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
ROT13 = {
    ord(one): ord("a") + (ord(one) - ord("a") + 13) % 26 for one in "abcdefghijklmnopqrstuvwxyz"
}
DIGITS = str.maketrans("013457@$", "oieastas")
"""Digits that are written for letters."""
MIXED = re.compile(r"(?<![a-z0-9@$])(?=[@$0-9]{0,8}[a-z])(?=[@$a-z]{0,12}[0-9@$])[a-z0-9@$]{3,20}+")
"""A word of letters and such digits."""
QUOTE_MARK = re.compile(r"^[ \t]{0,3}(?:>[ \t]{0,3}){1,9}+", re.MULTILINE)
LIST_MARK = re.compile(r"^[ \t\"]{0,12}(?:[-*+]|[0-9]{1,3}[.)])[ \t]{1,4}", re.MULTILINE)
FIRST_MARK = re.compile(r"^[ \t]{0,12}(?:[-*+]|[0-9]{1,3}[.)])[ \t]{1,4}", re.MULTILINE)
LINK = re.compile(r"\]\([^()\s]{0,400}|\]\[[^\]\n]{0,100}\]")
"""Where a link leads; what it is called, and its title, are read."""
MARKUP = re.compile(r"(?<=\w)[*_~`]+(?=\w)|[*~]{1,3}|(?<!\w)_+|_+(?!\w)")
LINE_TAG = re.compile(
    r"</?(?:br|p|div|li|ul|ol|tr|td|th|h[1-6]|hr|table|blockquote|pre|section)\b[^<>]{0,500}>",
    re.IGNORECASE,
)
TAG = re.compile(r"</?[A-Za-z][^<>]{0,500}>")
BROKEN_WORD = re.compile(r"(?<=[a-z])-\n[ \t]*+(?=[a-z])")
SPLIT_WORD = re.compile(r"\b([a-z]{1,10})[ \t]{0,4}\n[ \t\"]{0,8}([a-z]{1,10})\b")
BAR = re.compile(r"(?<!<)\|(?!>)")
GAPS = re.compile(r"\b(?:[a-z][ .\-_*]){2,}[a-z]\b")
NO_LETTER = re.compile(r"[^a-z]")
SPACE = re.compile(r"\s+")
ROTATED = re.compile(r"vafgehpg|cebzcg|cnffjbeq|perqragvny|frperg|frphevgl|thvqryvar")
"""Words of the patterns, rotated by 13 letters."""


def _entity(found: re.Match[str]) -> str:
    # `unescape` hands digits to `int`, which refuses thousands of them.
    return html.unescape(TOO_LARGE.sub("\ufffd", LEADING_ZEROS.sub(r"\1", found[0])))


def _joined(found: re.Match[str]) -> str:
    """A word that a line break splits, if it is one that matters."""
    whole = found[1] + found[2]
    return whole if is_word_that_matters(whole) else found[0]


ENTITIES: Sequence[Step] = ((ENTITY, _entity),)
LATIN: Sequence[Step] = ((NO_ASCII, lambda one: as_latin(one[0])), LOWER)
LINES: Sequence[Step] = (
    *ENTITIES,
    *LATIN,
    (QUOTE_MARK, '" '),
    (LIST_MARK, ""),
    (LINK, " "),
    (BROKEN_WORD, ""),
    (BAR, " "),
    (MARKUP, ""),
    (SPLIT_WORD, _joined),
    (GAPS, lambda gap: NO_LETTER.sub("", gap[0])),
)
"""Lower case, Latin letters; nothing invisible, no emphasis; lines and spaces as they are."""
PLAIN: Sequence[Step] = (*LINES, (SPACE, " "))
WITHOUT_TAGS: Sequence[Step] = ((LINE_TAG, "\n"), (TAG, ""), *PLAIN)
KNOWN_BY: Sequence[Step] = (
    (FIRST_MARK, ""),
    (TAG, ""),
    *ENTITIES,
    *LATIN,
    (BAR, " "),
    (MARKUP, ""),
    (SPACE, " "),
)
"""Of what digests are made, which are stored: other steps would make other digests of a text."""
LETTERS: Step = (MIXED, lambda word: word[0].translate(DIGITS))


@dataclass(frozen=True, slots=True)
class Reading:
    """One way in which a text can be read."""

    text: str
    steps: Sequence[Step]


def readings(text: str) -> Iterator[Reading]:
    """The ways in which a text can be read: as it stands, and with what may be meant by it."""
    first = Reading(after(text, PLAIN), PLAIN)
    yield first
    if TAG.search(text):
        first = Reading(after(text, WITHOUT_TAGS), WITHOUT_TAGS)
        yield first
    if MIXED.search(first.text):
        yield Reading(after(first.text, [LETTERS]), (*first.steps, LETTERS))
    if ROTATED.search(first.text):
        yield Reading(first.text.translate(ROT13), (*first.steps, ROT13))


def without_entities(text: str) -> str:
    """The text with the characters that entities stand for."""
    return after(text, ENTITIES)


def after(text: str, steps: Sequence[Step]) -> str:
    """What the steps make of a text."""
    for step in steps:
        text = text.translate(step) if isinstance(step, Mapping) else step[0].sub(step[1], text)
    return text


def origin_of(source: str, steps: Sequence[Step], span: Span) -> Span:
    """From where in a text a piece of its reading came."""
    text, origins = source, list(range(len(source)))
    for step in steps:
        if isinstance(step, Mapping):
            text = text.translate(step)
        else:
            text, origins = _traced(text, origins, *step)
    origins.append(len(source))
    start, end = origins[span[0]], origins[span[1]]
    return start, start + len(source[start:end].rstrip())


def _traced(
    text: str, origins: list[int], pattern: re.Pattern[str], replacement: Replacement
) -> tuple[str, list[int]]:
    """A substitution, and where each character of what it makes was."""
    pieces: list[str] = []
    places: list[int] = []
    position = 0
    for found in pattern.finditer(text):
        new = replacement if isinstance(replacement, str) else replacement(found)
        pieces += text[position : found.start()], new
        places += origins[position : found.start()]
        if len(new) == len(found[0]):
            places += origins[found.start() : found.end()]
        else:
            places += [origins[found.start()]] * len(new)
        position = found.end()
    pieces.append(text[position:])
    places += origins[position:]
    return "".join(pieces), places

"""Finds what a reader of the text would not see, but a model would read."""

import re
from collections.abc import Iterator

from toolgate.packs.orchestrator.skills.markdown import COMMENT_START, parsed

ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u180e"
FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u2061-\u2064\u206a-\u206f\u3164\uffa0\ufff9-\ufffb"
IN_WORDS = re.compile(rf"[A-Za-z0-9][{ZERO_WIDTH}{FILLERS}]++[A-Za-z0-9]")
"""Between other letters these have a use: in emoji, Persian, Thai."""
IN_A_ROW = re.compile(rf"[{ZERO_WIDTH}{FILLERS}]{{2,}}+")
"""One has a use, a row of them spells something."""
SINGLE = re.compile(rf"(?<=[\x00-\x7f])[{ZERO_WIDTH}](?=[\x00-\x7f])")
MOST_SINGLE = 8
"""Some come with texts that were copied from pages; many spell something."""
OVERRIDES = re.compile(r"[\u202d\u202e]")
DIRECTIONS = re.compile(r"[\u202a\u202b\u202c\u2066-\u2069]")
RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
REGION_FLAG = re.compile(
    "\U0001f3f4(?:\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|"
    "\U000e0073\U000e0063\U000e0074|\U000e0077\U000e006c\U000e0073)|"
    "\U000e0075\U000e0073[\U000e0061-\U000e007a]{2})\U000e007f"
)
"""England, Scotland, Wales and the states of the USA: the one use of letters without a shape."""
TAGS = re.compile(r"[\U000e0000-\U000e007f]++")
SELECTORS = re.compile(
    r"[\ufe00-\ufe0f\U000e0100-\U000e01ef]{2,}+|[\x00-\x7f][\ufe00-\ufe0d\U000e0100-\U000e01ef]|"
    r"[A-Za-z\s][\ufe0e\ufe0f]"
)
"""One after an emoji or an ideograph chooses its shape; elsewhere they carry a message."""
MOST_DIRECTIVE = 200
DIRECTIVE = re.compile(
    r"(?:/? ?(?:toc|tocstop|more|omit (?:in|from) toc|prettier-ignore(?:-(?:start|end))?|"
    r"markdownlint-[\w-]+(?: MD\d+)*|cspell: ?[\w-]+(?: [\w-]+)*|spell-checker: ?\w+|"
    r"vale \w+|(?:start|end)[ -]?(?:toc|doctoc)?|eslint-[\w-]+|textlint-\w+))?",
    re.IGNORECASE,
)
"""What tools for Markdown read in comments."""
REFERENCE = re.compile(
    r"^ {0,3}\[[^\]\n]{1,100}\]:[ \t]*+(?:#|<>)[ \t]*+\n?[ \t]*+[\"'(]([^\n]*+)", re.MULTILINE
)
"""A link that leads nowhere, whose title is the comment: `[//]: # (text)`."""
TAG_START = re.compile(r"<\w")
HIDING = re.compile(
    r"display\s*+:\s*+none|visibility\s*+:\s*+hidden|font-size\s*+:\s*+0|"
    r"opacity\s*+:\s*+0(?![.\d])|\bhidden\b(?!\s*+-)",
    re.IGNORECASE,
)
NEVER_SHOWN = re.compile(r"<(template|noscript|datalist|script)\b", re.IGNORECASE)
NEVER_SHOWN_END = re.compile(r"</(template|noscript|datalist|script)\b", re.IGNORECASE)
SHOWN = re.compile(r"\s*+[^<\s]")


def hidden_in(text: str) -> str | None:
    """The first piece of hidden text, as it may be shown; None where there is none."""
    if not text.isascii() and (found := _invisible(text)):
        return found
    markdown = parsed(text)
    for comment in markdown.comments:
        if not _is_directive(comment):
            return COMMENT_START + comment
    for reference in REFERENCE.finditer(markdown.prose):
        if not _is_directive(reference[1].strip("\"')")):
            return reference[0]
    return next(_hiding_tags(markdown.prose), None)


def _invisible(text: str) -> str | None:
    """The first characters without a shape that have no honest use where they stand."""
    without_flags = REGION_FLAG.sub("", text)
    for pattern in (TAGS, SELECTORS, OVERRIDES, IN_WORDS, IN_A_ROW):
        if found := pattern.search(without_flags):
            return _around(without_flags, found)
    if (found := DIRECTIONS.search(text)) and not RIGHT_TO_LEFT.search(text):
        return _around(text, found)
    single = list(SINGLE.finditer(text))
    return _around(text, single[0]) if len(single) > MOST_SINGLE else None


def _is_directive(comment: str) -> bool:
    content = comment.strip()
    return len(content) <= MOST_DIRECTIVE and DIRECTIVE.fullmatch(content) is not None


def _hiding_tags(prose: str) -> Iterator[str]:
    """Tags whose content is not shown, with its first character."""
    ends = {one[1].lower(): one.start() for one in NEVER_SHOWN_END.finditer(prose)}
    position = 0
    while start := TAG_START.search(prose, position):
        # The first "<" before a ">" stands for all between them.
        position = prose.find(">", start.end()) + 1
        if not position:
            return
        tag = prose[start.start() : position]
        element = NEVER_SHOWN.match(tag)
        never = element is not None and ends.get(element[1].lower(), -1) > position
        if (never or HIDING.search(tag)) and (shown := SHOWN.match(prose, position)):
            yield tag + shown[0]


def _around(text: str, found: re.Match[str]) -> str:
    """The place with its neighbours, and the invisible by number."""
    part = text[max(0, found.start() - 20) : found.end() + 20]
    return "".join(one if one.isprintable() or one == "\n" else f"U+{ord(one):04X}" for one in part)

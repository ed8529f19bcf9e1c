"""Finds what a reader of the text would not see, but a model would read."""

import re
from collections.abc import Iterator

from toolgate.packs.orchestrator.skills.markdown import COMMENT_START, parsed
from toolgate.packs.orchestrator.skills.plain_text import without_entities
from toolgate.packs.orchestrator.unseen_text import hidden_characters_in

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
    if found := hidden_characters_in(text):
        return found
    markdown = parsed(text)
    for comment in markdown.comments:
        if not _is_directive(comment):
            return COMMENT_START + comment
    for reference in REFERENCE.finditer(markdown.prose):
        if not _is_directive(reference[1].strip("\"')")):
            return reference[0]
    return next(_hiding_tags(markdown.prose), None)


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
        if (never or HIDING.search(without_entities(tag))) and (
            shown := SHOWN.match(prose, position)
        ):
            yield tag + shown[0]

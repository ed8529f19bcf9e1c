"""Finds what a reader of the text would not see, but a model would read."""

import re
from collections.abc import Iterator

from toolgate.packs.orchestrator.skills.markdown import Comment, parsed
from toolgate.packs.orchestrator.skills.plain_text import Span, without_entities
from toolgate.packs.orchestrator.unseen_text import hidden_characters_at

MAX_DIRECTIVE = 200
DIRECTIVE = re.compile(
    r"(?:/? ?(?:omit (?:in|from) toc|prettier-ignore(?:-(?:start|end))?|"
    r"markdownlint-[\w-]+(?: MD\d+)*|cspell: ?(?:disable|enable)(?:-[\w-]+)?|"
    r"spell-checker: ?(?:disable|enable)|vale (?:on|off)|(?:start|end|begin)[ -]?\w{0,20}|"
    r"eslint-[\w-]+|textlint-\w+|[\w-]{1,30}))?",
    re.IGNORECASE,
)
"""What tools for Markdown read in comments, and a single word, which labels a part."""
DECLARATION = re.compile(
    r"doctype html|xml version=[\"']1\.[01][\"'](?: encoding=[\"'][\w-]{1,20}[\"'])?\??",
    re.IGNORECASE,
)
REFERENCE = re.compile(
    r"^ {0,3}\[[^\]\n]{1,100}\]:[ \t]*+(?:#|<>)[ \t]*+\n?[ \t]*+[\"'(]([^\n]*+)", re.MULTILINE
)
"""A link that leads nowhere, whose title is the comment: `[//]: # (text)`."""
TAG_START = re.compile(r"<\w")
MAX_TAG = 2000
QUOTED = re.compile(r"\"[^\"]*+\"|'[^']*+'")
HIDING_STYLE = re.compile(
    r"display\s*+:\s*+none|visibility\s*+:\s*+hidden|font-size\s*+:\s*+0*\.?0*(?![.\d])(?<=0)|"
    r"opacity\s*+:\s*+0*\.?0*(?![.\d])(?<=0)",
    re.IGNORECASE,
)
HIDDEN = re.compile(r"\shidden(?![\w-])", re.IGNORECASE)
"""The attribute; a class may have that name."""
NEVER = (
    r"(template|noscript|datalist|script|style|dialog|canvas|noframes|noembed|object|audio|video)"
)
NEVER_SHOWN = re.compile(rf"<{NEVER}\b", re.IGNORECASE)
NEVER_SHOWN_END = re.compile(rf"</{NEVER}\b", re.IGNORECASE)
OPEN = re.compile(r"\sopen(?![\w-])", re.IGNORECASE)
SHOWN = re.compile(r"\s*+[^<\s]")


def hidden_in(text: str) -> Span | None:
    """Where the first piece of hidden text stands; None where there is none."""
    if found := hidden_characters_at(text):
        return found
    markdown = parsed(text)
    for comment in markdown.comments:
        if not _is_directive(comment):
            return comment.start, comment.end
    for reference in REFERENCE.finditer(markdown.prose):
        if not _is_label(reference[1].strip("\"')")):
            return reference.span()
    return next(_hiding_tags(markdown.prose), None)


def _is_directive(comment: Comment) -> bool:
    if comment.opening == "<!--":
        return _is_label(comment.content)
    return DECLARATION.fullmatch(comment.content.strip()[:MAX_DIRECTIVE]) is not None


def _is_label(comment: str) -> bool:
    return len(comment) <= MAX_DIRECTIVE and DIRECTIVE.fullmatch(comment.strip()) is not None


def _hiding_tags(prose: str) -> Iterator[Span]:
    """Tags whose content is not shown, with its first character."""
    ends = {one[1].lower(): one.start() for one in NEVER_SHOWN_END.finditer(prose)}
    position = 0
    while start := TAG_START.search(prose, position):
        # The first "<" before a ">" stands for all between them.
        position = prose.find(">", start.end()) + 1
        if not position:
            return
        end = _tag_end(prose, start.start(), position)
        if _hides(prose[start.start() : end], ends, end) and (shown := SHOWN.match(prose, end)):
            yield start.start(), shown.end()


def _tag_end(prose: str, start: int, position: int) -> int:
    """Where a tag ends whose first ">" is before this place: one in a quoted value ends nothing."""
    bare = QUOTED.sub("", prose[start:position])
    for mark in "\"'":
        if mark in bare:
            closed = prose.find(mark, position, position + MAX_TAG)
            end = prose.find(">", closed, closed + MAX_TAG) if closed >= 0 else -1
            return end + 1 if end >= 0 else position
    return position


def _hides(tag: str, ends: dict[str, int], end: int) -> bool:
    tag = without_entities(tag)
    bare = QUOTED.sub("", tag)
    element = NEVER_SHOWN.match(tag)
    if element is not None and ends.get(element[1].lower(), -1) >= end:
        return not (element[1].lower() == "dialog" and OPEN.search(bare))
    return HIDING_STYLE.search(tag) is not None or HIDDEN.search(bare) is not None

"""JSON with comments and trailing commas, as VS Code keeps it: read, and changed in place.

Python's own decoder reads every value; what is done here is to blank what it does not know, and
to find where a member begins and ends. Everything else in the text stays as it is.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, cast

COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
TRAILING_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)
BLANK = re.compile(r"\s*")
STEP = "  "
DECODER = json.JSONDecoder()


def without_comments(text: str) -> str:
    """The same JSON without comments and trailing commas, each character where it was."""
    return TRAILING_COMMA.sub(_blank, COMMENT.sub(_blank, text))


def _blank(match: re.Match[str]) -> str:
    return match[1] or re.sub(r"[^\n]", " ", match[0])


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """The text with this member set, and the objects on its way made if need be."""
    start = end = _after_blank(without_comments(text), 0)
    for depth, name in enumerate(path):
        members = _members(without_comments(text), start)
        if name not in members:
            for outer in reversed(path[depth + 1 :]):
                value = {outer: value}
            return _append(text, start, f"{json.dumps(name)}: {_format(value, depth + 1)}")
        start, end = members[name]
    return text[:start] + _format(value, len(path)) + text[end:]


def with_item(text: str, name: str, value: Any) -> str:
    """The text with one more item in a list of the outermost object."""
    start = _after_blank(without_comments(text), 0)
    members = _members(without_comments(text), start)
    if name not in members:
        return with_member(text, [name], [value])
    return _append(text, members[name][0], _format(value, 2), depth=2)


def _format(value: Any, depth: int) -> str:
    return json.dumps(value, indent=len(STEP), ensure_ascii=False).replace(
        "\n", f"\n{STEP * depth}"
    )


def _append(text: str, start: int, part: str, depth: int | None = None) -> str:
    """The text with one more member or item at the end of the object or list that starts there."""
    json_text = without_comments(text)
    _, end = DECODER.raw_decode(json_text, start)
    last = len(json_text[: end - 1].rstrip())
    inside = len(text[: end - 1].rstrip())
    level = depth if depth is not None else _depth(json_text, start)
    empty = last == start + 1
    comma = "" if empty or _has_comma(text, json_text, last, end) else ","
    lead = f"\n{STEP * level}"
    trail = f"\n{STEP * (level - 1)}"
    return text[:last] + comma + text[last:inside] + lead + part + trail + text[end - 1 :]


def _has_comma(text: str, json_text: str, last: int, end: int) -> bool:
    """Whether a comma trails the last value: blanked in the one, and outside comments."""
    return "," in COMMENT.sub(_blank, text)[last : end - 1] and "," not in json_text[last : end - 1]


def _depth(json_text: str, start: int) -> int:
    """How deep the inside of the object that starts there is."""
    before = re.sub(r'"(?:\\.|[^"\\])*"', "", json_text[: start + 1])
    return sum(before.count(one) for one in "{[") - sum(before.count(one) for one in "}]")


def _members(json_text: str, start: int) -> dict[str, tuple[int, int]]:
    """Where the value of each member of an object begins and ends."""
    members: dict[str, tuple[int, int]] = {}
    at = _after_blank(json_text, start + 1)
    while json_text[at] != "}":
        name, at = cast("tuple[str, int]", DECODER.raw_decode(json_text, at))
        at = _after_blank(json_text, _after_blank(json_text, at) + 1)
        begin = at
        _, at = DECODER.raw_decode(json_text, begin)
        members[name] = (begin, at)
        at = _after_blank(json_text, at)
        if json_text[at] == ",":
            at = _after_blank(json_text, at + 1)
    return members


def _after_blank(text: str, at: int) -> int:
    blank = BLANK.match(text, at)
    return blank.end() if blank else at

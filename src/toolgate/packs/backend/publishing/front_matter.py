"""The YAML at the top of a post: written so that it reads back as it was, and kept to the byte."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import yaml

MARK = "---"
_YAML: Any = yaml
"""The same; not all of it has types."""
_FENCE = re.compile(rb"\A(\xef\xbb\xbf)?---[ \t]*(\r?\n)")
_END = re.compile(rb"^---[ \t]*(\r?\n|\Z)", re.MULTILINE)
_BREAKS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")


class BadFrontMatter(ValueError):
    """The front matter cannot be changed; the message says why."""


class _Dumper(yaml.SafeDumper):
    """Puts each text on one line."""


def _text(dumper: Any, value: str) -> yaml.ScalarNode:
    """A text; one with line breaks in double quotes, where they are escaped."""
    style = '"' if _BREAKS.search(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def dumped(value: Any) -> str:
    """A value as YAML."""
    return yaml.dump(value, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=2**31)


def scalar(text: str) -> str:
    """A text as YAML, on one line."""
    return dumped([text]).removeprefix("- ").rstrip("\n")


def post_file(fields: Mapping[str, Any], body: str) -> bytes:
    """A new post."""
    return f"{MARK}\n{dumped(dict(fields))}{MARK}\n\n{body}\n".encode()


@dataclass(frozen=True, slots=True)
class PostFile:
    """A post as it is."""

    front_matter: bytes
    """With the lines around it; empty where there is none."""
    newline: bytes

    def with_body(self, body: str) -> bytes:
        """The post with another body, in the line ends of the rest."""
        lines = body.replace("\r\n", "\n").replace("\r", "\n").encode()
        gap = b"\n" if self.front_matter else b""
        return self.front_matter + (gap + lines + b"\n").replace(b"\n", self.newline)

    def with_title(self, title: str) -> "PostFile":
        """The same with another title and not a byte changed besides."""
        try:
            text = self.front_matter.decode("utf-8")
            start, end = _place_of_title(text)
        except (UnicodeDecodeError, yaml.YAMLError):
            raise BadFrontMatter(
                "its front matter is not valid YAML, so its title cannot be changed"
            ) from None
        new = text[:start] + scalar(title) + text[end:]
        _check_same(text, new, title)
        return PostFile(new.encode(), self.newline)


def parse_post(content: bytes) -> PostFile:
    """A post in its parts."""
    begin = _FENCE.match(content)
    end = _END.search(content, begin.end()) if begin else None
    if begin is None or end is None:
        return PostFile(b"", b"\r\n" if b"\r\n" in content else b"\n")
    newline = begin.group(2)
    last = b"" if end.group(1) else newline
    return PostFile(content[: end.end()] + last, newline)


def _inner(text: str) -> tuple[str, int]:
    """The YAML between the lines, and where it begins."""
    begin = text.index("\n") + 1
    return text[begin : text.rstrip().rindex(MARK)], begin


def _place_of_title(text: str) -> tuple[int, int]:
    """From where to where the title is in a post: `post.title`, or else `title`."""
    if not text:
        raise BadFrontMatter("it has no front matter, so it has no title")
    yaml_text, offset = _inner(text)
    root: yaml.Node | None = _YAML.compose(yaml_text, Loader=yaml.SafeLoader)
    post = _value(root, "post")
    node = _value(post, "title") or _value(root, "title")
    if not isinstance(node, yaml.ScalarNode):
        raise BadFrontMatter("its front matter has no title that could be changed")
    start, end = node.start_mark.index, node.end_mark.index
    # The end of a text in several lines is where the next key begins.
    found = yaml_text[start:end]
    end -= len(found) - len(found.rstrip(" \t\r\n"))
    return offset + start, offset + end


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    if not isinstance(node, yaml.MappingNode):
        return None
    pairs = cast("list[tuple[yaml.Node, yaml.Node]]", node.value)
    for name, value in pairs:
        if isinstance(name, yaml.ScalarNode) and name.value == key:
            return value
    return None


def _check_same(before: str, after: str, title: str) -> None:
    """Raise unless the title is all that differs: YAML has more corners than this module knows."""
    try:
        old, new = _events(before), _events(after)
    except yaml.YAMLError:
        old, new = [], [("", "", "")]
    differing = [pair for pair in zip(old, new, strict=False) if pair[0] != pair[1]]
    same = len(old) == len(new) and len(differing) <= 1
    # Where it has an anchor, others say the same by it.
    if not same or any(new[1] != title or old[2] or new[2] for old, new in differing):
        raise BadFrontMatter("its title is written in a way that cannot be changed safely")


def _events(text: str) -> list[tuple[str, str, str]]:
    """What a YAML parser meets, as kind, value and anchor, without places and styles."""
    found: list[tuple[str, str, str]] = []
    for event in _YAML.parse(_inner(text)[0], Loader=yaml.SafeLoader):
        value, anchor = (getattr(event, name, None) or "" for name in ("value", "anchor"))
        found.append((type(event).__name__, value, anchor))
    return found

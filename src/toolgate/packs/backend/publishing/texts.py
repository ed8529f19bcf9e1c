"""Texts that are made from a post: its address, its description, its commit message."""

import re
import zlib
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

MAX_SLUG = 100
MAX_DESCRIPTION = 200
MAX_SUBJECT = 60
MAX_LOOK = 5_000
"""Characters in which the first sentence is looked for."""
BLOG = "blog"
SLUG = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_SENTENCE = re.compile(r"[.!?…。！？](?=\s|$)")
_LINK = re.compile(r"!?\[([^\[\]]{0,500})\]\([^()\s]{0,2000}\)")
_TAG = re.compile(r"<[^<>]{1,500}>")
_MARKS = re.compile(r"[*_`~]+")
_NO_PROSE = ("#", "!", "|", ">", "```", "~~~", "<", "---", "===", "{%", "    ")


def slug_of(text: str) -> str:
    """The last part of an address; empty where a text has neither letter nor digit."""
    from slugify import slugify  # noqa: PLC0415 (its tables are not small)

    return slugify(text, max_length=MAX_SLUG, word_boundary=True)


def slug_of_address(address: str) -> str | None:
    """Which post an address means: `x`, `blog/x`, `/blog/x/` or `https://HOST/blog/x`."""
    try:
        parts = urlsplit(address.strip())
    except ValueError:
        return None
    if parts.scheme not in ("", "http", "https"):
        return None
    names = unquote(parts.path).strip("/").split("/")
    if names[:1] == [BLOG]:
        names = names[1:]
    elif parts.netloc:
        return None
    slug = names[0].removesuffix(".html") if len(names) == 1 else ""
    return slug if SLUG.fullmatch(slug) else None


def first_sentence(body: str) -> str:
    """The first sentence of the first paragraph, as plain text; empty where there is none."""
    for paragraph in body[:MAX_LOOK].replace("\r\n", "\n").split("\n\n"):
        if paragraph.strip() and not paragraph.startswith(_NO_PROSE):
            text = _LINK.sub(r"\1", paragraph)
            text = " ".join(_MARKS.sub("", _TAG.sub("", text)).split())
            if text:
                end = _SENTENCE.search(text)
                return shortened(text[: end.end()] if end else text, MAX_DESCRIPTION)
    return ""


def shortened(text: str, most: int) -> str:
    """A text cut between words."""
    if len(text) <= most:
        return text
    cut = text[: most - 1]
    return (cut.rpartition(" ")[0] or cut).rstrip(" ,;:-") + "…"


def one_line(text: str) -> str:
    """A text fit for the first line of a commit message."""
    printable = "".join(one if one.isprintable() else " " for one in text)
    return shortened(" ".join(printable.split()), MAX_SUBJECT)


def chosen_author(authors: Sequence[str], slug: str) -> str:
    """One of them, always the same for a post."""
    return authors[zlib.crc32(slug.encode()) % len(authors)]

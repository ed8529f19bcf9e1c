"""Text as it is read, whatever it is spelled with: look-alike letters, entities, gaps, encodings.

Every step costs what the text's length says: patterns neither nest nor overlap, and marks are taken
away before `normalize` would sort them.
"""

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Iterator

CYRILLIC = dict(zip("асԁеһіјкӏморԛгѕтѡху", "acdehijklmopqrstwxy", strict=True))
GREEK = dict(zip("αβεηικνορτυχγ", "abenikvoptuxy", strict=True))
OTHERS = dict(zip("ℓıɑɡɩʟո", "liagiln", strict=True))
LOOK_ALIKES = str.maketrans({**CYRILLIC, **GREEK, **OTHERS})
"""Letters that look Latin; of scripts whose own words mean something else when taken for it."""
QUOTES = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "\u2800": " "}
)
DIGITS = str.maketrans("013457@$", "oieastas")
"""Digits that are written for letters."""
MIXED = re.compile(r"(?<![a-z0-9@$])(?=[@$0-9]{0,8}[a-z])(?=[@$a-z]{0,12}[0-9@$])[a-z0-9@$]{3,20}+")
"""A word of letters and such digits."""
LEADING_ZEROS = re.compile(r"(&#[xX]?)0+")
TOO_LARGE = re.compile(r"&#(?:[0-9]{8,}+|[xX][0-9a-fA-F]{7,}+);?")
MARKUP = re.compile(r"(?<=\w)[*_~`]+(?=\w)|[*~]{1,3}|(?<!\w)_+|_+(?!\w)")
PHRASES = re.compile(r"[\ufdf0-\ufdfd]")
"""Single characters that stand for Arabic phrases of up to eighteen letters."""
TAG = re.compile(r"</?[A-Za-z][^<>]{0,500}>")
LIST_MARK = re.compile(r"^[ \t]{0,12}(?:[-*+]|[0-9]{1,3}[.)])[ \t]{1,4}", re.MULTILINE)
BROKEN_WORD = re.compile(r"(?<=[a-z])-\n[ \t]*+(?=[a-z])")
BAR = re.compile(r"(?<!<)\|(?!>)")
GAPS = re.compile(r"\b(?:[a-z][ .\-_*]){4,}[a-z]\b")
SPACE = re.compile(r"\s+")
ENCODED = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{24,}+={0,2}(?![A-Za-z0-9+/=_-])")
ENCODED_LINE = re.compile(r"[A-Za-z0-9+/_-]{4,}+={0,2}")
ENCODED_END = re.compile(r"[A-Za-z0-9+/_-]{1,3}={0,2}")
HEXADECIMAL = re.compile(r"(?<![0-9a-fA-F])(?:(?:0x|\\x)?[0-9a-fA-F]{2}[ ,:]?){16,}+")
HEX_DIGITS = re.compile(r"(?:0x|\\x)?([0-9a-fA-F]{2})")
ROTATED = re.compile(r"vafgehpg|cebzcg|cnffjbeq|perqragvny|frperg|frphevgl|thvqryvar")
"""Words of the patterns, rotated by 13 letters."""
MOST_LAYERS = 3
READABLE = 0.9


def plain(text: str) -> str:
    """Lower case, Latin letters, single spaces; nothing invisible, no emphasis."""
    return SPACE.sub(" ", plain_lines(text)).strip()


def plain_lines(text: str) -> str:
    """The same, with its lines and spaces as they are."""
    latin = _latin(without_entities(text))
    whole = BROKEN_WORD.sub("", BAR.sub(" ", latin))
    return GAPS.sub(lambda gap: re.sub(r"[^a-z]", "", gap[0]), MARKUP.sub("", whole))


def with_letters(text: str) -> str | None:
    """Plain text with digits read as the letters they stand for; None where no word mixes them."""
    read, count = MIXED.subn(lambda word: word[0].translate(DIGITS), text)
    return read if count else None


def rotated_back(text: str) -> str | None:
    """Plain text rotated by 13 letters, if that makes words that matter."""
    return codecs.decode(text, "rot13") if ROTATED.search(text) else None


def decoded(text: str) -> Iterator[str]:
    """What is readable of the text's Base64 and hexadecimal digits, layer by layer."""
    for _ in range(MOST_LAYERS):
        text = "\n".join(_readable(text))
        if not text:
            return
        yield text


def without_markup(text: str) -> str | None:
    """The text without tags and marks of lists; None where it has none."""
    bare, count = LIST_MARK.subn("", text)
    bare, tags = TAG.subn("", bare)
    return bare if count or tags else None


def without_entities(text: str) -> str:
    """The text with the characters that entities stand for."""
    # `unescape` hands digits to `int`, which refuses thousands of them.
    return html.unescape(TOO_LARGE.sub("\ufffd", LEADING_ZEROS.sub(r"\1", text)))


def _latin(text: str) -> str:
    if not text.isascii():
        bare = PHRASES.sub(" ", _without_marks(text))
        text = _without_marks(unicodedata.normalize("NFKD", bare))
    return text.casefold().translate(LOOK_ALIKES).translate(QUOTES)


def _without_marks(text: str) -> str:
    """Without what has no shape of its own; `normalize` sorts rows of marks in quadratic time."""
    return "".join(
        one
        for one in text
        if one.isascii()
        or not (unicodedata.combining(one) or unicodedata.category(one) in ("Cf", "Mn", "Me"))
    )


def _readable(text: str) -> Iterator[str]:
    for found in ENCODED.finditer(text):
        yield from _from_base64(found[0])
    for block in _encoded_lines(text):
        yield from _from_base64(block)
    for found in HEXADECIMAL.finditer(text):
        yield from _as_text(bytes.fromhex("".join(HEX_DIGITS.findall(found[0]))))


def _encoded_lines(text: str) -> Iterator[str]:
    """Lines in a row that hold nothing but Base64, joined."""
    block: list[str] = []
    for line in [*text.splitlines(), ""]:
        bare = line.strip(" \t>*-|`")
        if ENCODED_LINE.fullmatch(bare):
            block.append(bare)
            continue
        if len(block) > 1:
            yield "".join(block)
        if block and ENCODED_END.fullmatch(bare):
            yield "".join([*block, bare])
        block = []


def _from_base64(run: str) -> Iterator[str]:
    digits = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        yield from _as_text(base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True))
    except binascii.Error:
        return


def _as_text(content: bytes) -> Iterator[str]:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return
    if sum(one.isprintable() or one.isspace() for one in text) >= READABLE * len(text):
        yield text

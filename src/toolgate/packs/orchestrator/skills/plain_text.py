"""Text as it is read, whatever it is spelled with: look-alike letters, entities, gaps, Base64."""

import base64
import binascii
import html
import re
import unicodedata
from collections.abc import Iterator

CYRILLIC = dict(zip("асԁеһіјкӏморԛгѕтѡху", "acdehijklmopqrstwxy", strict=True))
GREEK = dict(zip("αβεηικνορτυχγ", "abenikvoptuxy", strict=True))
OTHERS = dict(zip("ℓıɑɡɩʟո", "liagiln", strict=True))
LOOK_ALIKES = str.maketrans({**CYRILLIC, **GREEK, **OTHERS})
"""Letters that look Latin; of scripts whose own words mean something else when taken for it."""
QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'"})
MARKUP = re.compile(r"(?<=\w)[*_~`]+(?=\w)|[*~]{1,3}|(?<!\w)_+|_+(?!\w)")
GAPS = re.compile(r"\b(?:[a-z][ .\-_*]){4,}[a-z]\b")
SPACE = re.compile(r"\s+")
ENCODED = re.compile(r"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/_-]{24,}={0,2}(?![A-Za-z0-9+/=_-])")
MOST_ENCODED = 200
READABLE = 0.9


def plain(text: str) -> str:
    """Lower case, Latin letters, single spaces; nothing invisible, no emphasis."""
    return SPACE.sub(" ", plain_lines(text)).strip()


def plain_lines(text: str) -> str:
    """The same, with its lines and spaces as they are."""
    whole = unicodedata.normalize("NFKD", html.unescape(text))
    seen = "".join(one for one in whole if unicodedata.category(one) not in ("Cf", "Mn", "Me"))
    latin = seen.casefold().translate(LOOK_ALIKES).translate(QUOTES)
    return GAPS.sub(lambda gap: re.sub(r"[^a-z]", "", gap[0]), MARKUP.sub("", latin))


def decoded(text: str) -> Iterator[str]:
    """What is readable of the text's Base64."""
    for number, found in enumerate(ENCODED.finditer(text)):
        if number >= MOST_ENCODED:
            return
        run = found[0].rstrip("=").replace("-", "+").replace("_", "/")
        try:
            content = base64.b64decode(run + "=" * (-len(run) % 4), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue
        letters = sum(one.isalpha() or one.isspace() for one in content)
        if letters >= READABLE * len(content):
            yield content

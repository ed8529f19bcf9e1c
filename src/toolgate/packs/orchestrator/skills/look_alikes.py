"""Characters as a reader takes them: look-alike letters as Latin ones, nothing without a shape."""

import re
import unicodedata
from functools import lru_cache

CYRILLIC = dict(zip("асԁеһіјкӏморԛгѕтѡху", "acdehijklmopqrstwxy", strict=True))
GREEK = dict(zip("αβεηικνορτυχγ", "abenikvoptuxy", strict=True))
LISU = dict(zip("ꓐꓑꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓦꓧꓪꓫꓬꓮꓰꓲꓳꓴ", "bpdtgkjczfmnlsrvhwxyaeiou", strict=True))
CHEROKEE = dict(zip("ᎠᎡᎢᎥᎪᎫᎬᎳᎷᎻᎽᏀᏃᏏᏒᏔᏙᏚᏞᏟᏢᏦᏴᎾᏫᏁᏌ", "drtiajewmhygzbrwvslcpkboonu", strict=True))
OTHERS = dict(zip("ℓıɑɡɩո", "liagin", strict=True))
QUOTES = {"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "\u2800": " "}
SHAPES = str.maketrans({**CYRILLIC, **GREEK, **LISU, **CHEROKEE, **OTHERS, **QUOTES})
"""Letters that look Latin; of scripts whose own words mean something else when taken for it."""
LATIN_NAME = re.compile(
    r"(?:\bLATIN\b.*|^REGIONAL INDICATOR SYMBOL )\bLETTER (?:SMALL CAPITAL )?([A-Z])(?: WITH .*)?$"
)
"""Small capitals, letters in filled squares and circles, turned and hooked ones keep a name."""
PHRASES = range(0xFDF0, 0xFDFE)
"""Single characters that stand for Arabic phrases of up to eighteen letters."""


@lru_cache(maxsize=4096)
def as_latin(character: str) -> str:
    """What a character outside ASCII is read as, in lower case; empty if it has no shape."""
    if _is_mark(character):
        return ""
    if ord(character) in PHRASES:
        return " "
    parts = unicodedata.normalize("NFKD", character).casefold().translate(SHAPES)
    return "".join(_named(one) for one in parts if one.isascii() or not _is_mark(one))


def _is_mark(character: str) -> bool:
    return bool(
        unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me")
    )


def _named(character: str) -> str:
    if character.isascii():
        return character
    found = LATIN_NAME.search(unicodedata.name(character, ""))
    return found[1].lower() if found else character

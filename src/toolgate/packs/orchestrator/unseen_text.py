"""Characters that nobody sees, and that can make a text look like another or steer a terminal."""

import re
import unicodedata

UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Unicode's categories of control and format characters and of separators of lines."""
LAYOUT = "\n\r\t"
"""Control characters of an ordinary text of several lines."""
REPLACEMENT = "\ufffd"
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""All but those of `LAYOUT`: a terminal deletes and hides text with them."""
ZERO_WIDTH = "\u200b\u200c\u200d\u2060\ufeff\u180e"
FILLERS = "\u034f\u115f\u1160\u17b4\u17b5\u2061-\u2064\u206a-\u206f\u3164\uffa0\ufff9-\ufffb"
IN_WORDS = re.compile(rf"[A-Za-z0-9][{ZERO_WIDTH}{FILLERS}]++[A-Za-z0-9]")
"""Between other letters these have a use: in emoji, Persian, Thai."""
IN_A_ROW = re.compile(rf"[{ZERO_WIDTH}{FILLERS}]{{2,}}+")
"""One has a use, a row of them spells something."""
SINGLE = re.compile(rf"(?<=[\x00-\x7f])[{ZERO_WIDTH}](?=[\x00-\x7f])")
MAX_SINGLE = 8
"""Some come with texts that were copied from pages; many spell something."""
OVERRIDES = re.compile(r"[\u202d\u202e]")
DIRECTIONS = re.compile(r"[\u202a\u202b\u202c\u2066-\u2069]")
RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
FLAG = "\U0001f3f4"
REGION_FLAG = re.compile(
    f"{FLAG}(?:\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|"
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
BLANK = re.compile(rf"[\s\u2800{ZERO_WIDTH}{FILLERS}]*+")
"""A text that shows nothing."""


def unseen_in(text: str, allowed: str = "") -> str | None:
    """The first such character of a text as U+XXXX; None without one."""
    if text.isprintable():
        return None
    found = next((one for one in text if _is_unseen(one, allowed)), None)
    return None if found is None else f"U+{ord(found):04X}"


def is_blank(text: str) -> bool:
    """Whether nothing of a text is seen."""
    return BLANK.fullmatch(text) is not None


def without_unseen(text: str, allowed: str = LAYOUT) -> str:
    """The text with U+FFFD in the place of each."""
    if text.isprintable():
        return text
    return "".join(REPLACEMENT if _is_unseen(one, allowed) else one for one in text)


def _is_unseen(character: str, allowed: str) -> bool:
    return character not in allowed and unicodedata.category(character) in UNSEEN


def hidden_characters_in(text: str) -> str | None:
    """The first characters without a shape that have no honest use where they stand, as shown."""
    span = hidden_characters_at(text)
    return None if span is None else shown(text[slice(*span)])


def hidden_characters_at(text: str) -> tuple[int, int] | None:
    """Where they stand, with their neighbours."""
    if (found := _hidden_characters(text)) is None:
        return None
    return max(0, found.start() - 20), min(len(text), found.end() + 20)


def shown(text: str) -> str:
    """The text with what has no shape by number."""
    return "".join(one if one.isprintable() or one == "\n" else f"U+{ord(one):04X}" for one in text)


def _hidden_characters(text: str) -> re.Match[str] | None:
    if found := CONTROL.search(text):
        return found
    if text.isascii():
        return None
    without_flags = REGION_FLAG.sub(lambda flag: FLAG * len(flag[0]), text)
    for pattern in (TAGS, SELECTORS, OVERRIDES, IN_WORDS, IN_A_ROW):
        if found := pattern.search(without_flags):
            return found
    if (found := DIRECTIONS.search(text)) and not RIGHT_TO_LEFT.search(text):
        return found
    single = list(SINGLE.finditer(text))
    return single[0] if len(single) > MAX_SINGLE else None

"""Characters that nobody sees, and that can make a text look like another or steer a terminal."""

import unicodedata

UNSEEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
"""Unicode's categories of control and format characters and of separators of lines."""
LAYOUT = "\n\r\t"
"""Control characters of an ordinary text of several lines."""
REPLACEMENT = "\ufffd"


def unseen_in(text: str, allowed: str = "") -> str | None:
    """The first such character of a text as U+XXXX; None without one."""
    if text.isprintable():
        return None
    found = next((one for one in text if _is_unseen(one, allowed)), None)
    return None if found is None else f"U+{ord(found):04X}"


def without_unseen(text: str, allowed: str = LAYOUT) -> str:
    """The text with U+FFFD in the place of each."""
    if text.isprintable():
        return text
    return "".join(REPLACEMENT if _is_unseen(one, allowed) else one for one in text)


def _is_unseen(character: str, allowed: str) -> bool:
    return character not in allowed and unicodedata.category(character) in UNSEEN

"""Names that clients choose for themselves, fit to be shown where a person decides.

Anybody may register under any name, so a name must not be able to speak in ours: it is short, in
one line, without addresses, and its letters stay in their line.
"""

import re
import unicodedata

MAX_SHOWN = 40
MAX_MARKS = 2
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|www\.|[^\s@]+@[^\s@]+\.", re.IGNORECASE)
BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters that show nothing."""


def shown_name(claimed_name: str) -> str:
    """The name as it is shown; empty where nothing of it can be."""
    if ADDRESS.search(claimed_name):
        return ""
    letters: list[str] = []
    marks = 0
    for letter in unicodedata.normalize("NFC", claimed_name):
        kind = unicodedata.category(letter)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if kind[0] == "C" or kind in ("Zl", "Zp") or letter in BLANK_LETTERS:
            letters.append(" ")
        elif marks <= MAX_MARKS:
            letters.append(letter)
    name = " ".join("".join(letters).split())
    return name if len(name) <= MAX_SHOWN else name[: MAX_SHOWN - 1].rstrip() + "…"

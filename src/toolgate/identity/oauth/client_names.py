"""Names that clients choose for themselves, fit to be shown where a person decides.

Anybody may register under any name, so a name must not be able to speak in ours: it is short, in
one line, without addresses, and its letters stay in their line.
"""

import re
import unicodedata

MOST_SHOWN = 40
MOST_MARKS = 2
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|www\.|[^\s@]+@[^\s@]+\.", re.IGNORECASE)
BLANK_LETTERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters that show nothing."""


def shown_name(given: str) -> str:
    """The name as it is shown; empty where nothing of it can be."""
    if ADDRESS.search(given):
        return ""
    kept: list[str] = []
    marks = 0
    for letter in unicodedata.normalize("NFC", given):
        kind = unicodedata.category(letter)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if kind[0] == "C" or kind in ("Zl", "Zp") or letter in BLANK_LETTERS:
            kept.append(" ")
        elif marks <= MOST_MARKS:
            kept.append(letter)
    name = " ".join("".join(kept).split())
    return name if len(name) <= MOST_SHOWN else name[: MOST_SHOWN - 1].rstrip() + "…"

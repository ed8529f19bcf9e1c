"""What a text is known by, however it is spelled."""

import hashlib
import re

from toolgate.packs.orchestrator.skills.plain_text import KNOWN_BY, after

NO_LETTER = re.compile(r"[\W_]+")


def text_digest(text: str) -> str:
    """The same for texts that differ in case, spaces, punctuation, markup or look-alike letters."""
    read = after(text, KNOWN_BY).strip()
    # Of a text without a letter, all that it has.
    known = NO_LETTER.sub("", read) or read
    return hashlib.sha256(known.encode(errors="replace")).hexdigest()

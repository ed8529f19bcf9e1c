"""What a text is known by, however it is spelled."""

import hashlib
import re

from toolgate.packs.orchestrator.long_texts import examine
from toolgate.packs.orchestrator.skills.plain_text import plain, without_markup

NO_LETTER = re.compile(r"[\W_]+")


async def text_digest(text: str) -> str:
    """The same for texts that differ in case, spaces, punctuation, markup or look-alike letters."""
    return await examine(len(text), lambda: _digest(text))


def _digest(text: str) -> str:
    read = plain(without_markup(text) or text)
    # Of a text without a letter, all that it has.
    known = NO_LETTER.sub("", read) or read
    return hashlib.sha256(known.encode(errors="replace")).hexdigest()

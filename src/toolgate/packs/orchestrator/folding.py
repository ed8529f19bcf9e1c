"""Text as searches compare it: without case, accents and different spellings of one character."""

import unicodedata


def folded(text: str) -> str:
    """The text in a form that is the same for all that should be found alike."""
    parts = unicodedata.normalize("NFKD", text.casefold())
    return "".join(one for one in parts if not unicodedata.combining(one))

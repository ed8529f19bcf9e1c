"""Regular expressions of callers, for an engine whose time grows with the text alone (RE2).

It grows with the expression too: at worst every byte of a text meets every instruction that the
expression was compiled to. So those are bounded, and `text_filters.py` counts the product.
"""

import importlib
from typing import Any

MAX_PATTERN = 300
"""Characters. The worst expressions of this length take less than 50 ms to compile."""
MAX_INSTRUCTIONS = 2_000
"""A word has one for each letter, `\\pL` about 400; `{1,100}` repeats those of what it follows."""
MAX_MEMORY = 1024 * 1024


class BadPattern(ValueError):
    """A text is no regular expression that is taken here; the message says why."""


def compiled(expression: str) -> Any:
    """The pattern of an expression; raises `BadPattern`."""
    # Imported here: most servers are never asked. It has no types.
    re2: Any = importlib.import_module("re2")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    try:
        pattern = re2.compile(expression, options)
    except re2.error as error:
        reason: Any = error.args[0] if error.args else b"it cannot be read"
        words = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise BadPattern(words) from None
    if pattern.programsize > MAX_INSTRUCTIONS:
        raise BadPattern(
            f"it becomes {pattern.programsize:,} instructions, and at most {MAX_INSTRUCTIONS:,} "
            "are possible: repeat less, and name fewer kinds of characters"
        )
    return pattern

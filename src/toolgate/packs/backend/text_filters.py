"""Patterns of callers, matched in linear time: no expression can keep the server busy."""

import importlib
import re
from collections.abc import Callable
from typing import Any

from toolgate.ports.documents import Fields
from toolgate.ports.filters import field_at

TextFilter = Callable[[Fields], bool]
"""Whether a document passes."""
WITH_FLAGS = re.compile(r"/(.*)/([a-z]*)", re.DOTALL)
FLAGS = {"i": "i", "m": "m", "s": "s", "g": "", "u": "", "y": ""}
"""Of JavaScript's expressions, and RE2's for them; some say how often to look, which is once."""
MAX_MEMORY = 1024 * 1024
ALTERNATIVES = " || "


class BadPattern(ValueError):
    """A text is no regular expression; the message says why."""


def text_filter(fields: str, expression: str) -> TextFilter:
    """Passes documents in which one of these fields is a text that contains the pattern."""
    paths = [one.strip().split(".") for one in fields.split(ALTERNATIVES)]
    pattern = compiled(expression)

    def passes(document: Fields) -> bool:
        texts = (field_at(document, path) for path in paths)
        return any(isinstance(text, str) and pattern.search(text) for text in texts)

    return passes


def compiled(expression: str) -> Any:
    """A pattern from its expression, which may be written as `/expression/flags`."""
    # Imported here: most servers are never asked. It has no types.
    re2: Any = importlib.import_module("re2")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    if written := WITH_FLAGS.fullmatch(expression):
        expression, flags = written.groups()
        if unknown := set(flags) - FLAGS.keys():
            raise BadPattern(f"unknown flag {min(unknown)!r}")
        if known := "".join(sorted({FLAGS[one] for one in flags})):
            expression = f"(?{known}){expression}"
    try:
        return re2.compile(expression, options)
    except re2.error as error:
        reason: Any = error.args[0] if error.args else b"it cannot be read"
        words = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise BadPattern(words) from None

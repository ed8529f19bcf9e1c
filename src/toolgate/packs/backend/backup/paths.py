"""Which documents are left out of a backup, by an expression that takes linear time."""

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any

MAX_EXPRESSION = 1000


class BadExpression(ValueError):
    """It is no regular expression; the message says why."""


def path_matcher(expression: str) -> Callable[[str], bool]:
    """Whether a path has this expression somewhere in it; raises `BadExpression`."""
    re2: Any = import_module("re2")  # not on import, and without types
    options = re2.Options()
    options.log_errors = False
    try:
        pattern = re2.compile(expression, options)
    except re2.error as problem:
        why = re.sub(r"^b['\"]|['\"]$", "", str(problem))
        raise BadExpression(why) from None
    return lambda path: pattern.search(path) is not None

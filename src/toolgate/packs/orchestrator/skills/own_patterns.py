"""Operators' own patterns: only those that cannot be made slow by the text they are sought in.

Python's engine tries every way in which a pattern can match from a place, and lets nothing else run
meanwhile. So the ways are counted before a pattern is taken.
"""

import importlib
import re
from typing import Any

MAX_WAYS = 100
MAX_CHARACTERS = 200
SINGLE = frozenset({"LITERAL", "NOT_LITERAL", "ANY", "IN", "AT", "GROUPREF"})


def problem_of(pattern: str) -> str | None:
    """Why a pattern is not taken; None for one that is."""
    try:
        re.compile(pattern, re.IGNORECASE)
    except re.error as problem:
        return f"it is no regular expression: {problem}"
    if ways_of(pattern) > MAX_WAYS:
        return (
            "a text could make it slow. Give repetitions an upper bound, such as {0,20} for * and "
            f"{{1,20}} for +, use few of them, and match {MAX_CHARACTERS} characters at most. "
            "White space in the text is already a single space"
        )
    return None


def ways_of(pattern: str) -> float:
    """In how many ways a pattern can match from one place, at most."""
    # The engine's own parser: there is no public one, and another would differ in places.
    parser: Any = importlib.import_module("re._parser")
    return _ways(parser.parse(pattern))


def _ways(parsed: Any) -> float:
    """In how many ways a parsed pattern can match from one place, at most."""
    if parsed.getwidth()[1] > MAX_CHARACTERS:
        return float("inf")
    ways: float = 1
    for operation, argument in parsed:
        ways *= _ways_of(str(operation), argument)
    return ways


def _ways_of(operation: str, argument: Any) -> float:
    if operation in SINGLE:
        return 1
    if operation == "BRANCH":
        return sum(_ways(one) for one in argument[1])
    if operation in ("SUBPATTERN", "ASSERT", "ASSERT_NOT"):
        return _ways(argument[-1])
    if operation == "ATOMIC_GROUP":
        return _ways(argument)
    if operation in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, most, repeated = argument
        return _repeated(int(least), int(most), _ways(repeated))
    return float("inf")


def _repeated(least: int, most: int, ways: float) -> float:
    if most > MAX_CHARACTERS or ways > MAX_WAYS:
        return float("inf")
    return sum(min(ways**count, MAX_WAYS + 1) for count in range(least, most + 1))

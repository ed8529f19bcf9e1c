"""Paths and addresses with `{variables}` in them."""

import re

VARIABLE = re.compile(r"\{(\w+)\}")


def pattern_of(template: str) -> re.Pattern[str]:
    """What matches it, with a group for each variable: some text without a slash."""
    parts = VARIABLE.split(template)
    return re.compile(
        "".join(f"(?P<{one}>[^/]+)" if at % 2 else re.escape(one) for at, one in enumerate(parts))
    )

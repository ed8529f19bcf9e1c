"""Which methods of MCP are counted where."""

from typing import Any

CALLS = frozenset(["tools/call", "resources/read"])
"""The gate counts these."""
COUNTED = frozenset(
    [
        "tools/list",
        "prompts/list",
        "prompts/get",
        "resources/list",
        "resources/templates/list",
        "resources/subscribe",
        "resources/unsubscribe",
        "completion/complete",
    ]
)
"""Requests that are no call of a tool, and cost something: each counts as one."""
FREE = frozenset(["notifications/cancelled", "notifications/progress"])
"""They belong to a call, which was counted, and must reach it."""


def uncounted_method(message: Any) -> str | None:
    """The method of a message that only the SDK looks at; None where it is counted elsewhere.

    Even a ping takes the SDK ten times as long as a list of tools takes us.
    """
    match message:
        case {"method": str() as method} if method not in CALLS | COUNTED | FREE:
            return method
        case _:
            return None

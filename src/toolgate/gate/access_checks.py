"""A pack's own say on a call, once its arguments are parsed and in scope.

Cedar's rules look at callers and tools alone. A pack that keeps rules about single users, tasks or
arguments offers a check; each of its tools then asks it before its handler runs.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from toolgate.gate.context import World
from toolgate.gate.principal import Principal


class AccessRequest(NamedTuple):
    """What a check may look at."""

    principal: Principal
    tool: str
    arguments: Any
    """Of the tool's Input."""
    ids: Mapping[str, str]
    """The scope ids among them, by the name of their column in the audit, such as `task_id`."""


AccessCheck = Callable[[World, AccessRequest], Awaitable[str | None]]
"""The rule that refuses the call, as the audit names it, or None where it is allowed."""

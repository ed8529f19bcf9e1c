"""A pack's own say on a call, once its arguments are parsed and in scope.

Cedar's rules look at callers and tools alone. A pack that keeps rules about single users, tasks or
arguments offers a check; each of its tools then asks it before its handler runs.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from toolgate.gate.context import World
from toolgate.gate.errors import printable
from toolgate.gate.principal import Principal

MAX_NAMES = 50
"""Groups in an audit row, and roles; where there are more, the rest is three dots."""


class AccessRequest(NamedTuple):
    """What a check may look at."""

    principal: Principal
    tool: str
    arguments: Any
    """Of the tool's Input."""
    ids: dict[str, str]
    """The scope ids among them, by the name of their column in the audit, such as `task_id`."""

    def note_ids(self, *, task_id: str | None = None, project_id: str | None = None) -> None:
        """Tell the audit which ids the arguments name, where no field is marked as one."""
        for column, value in (("task_id", task_id), ("project_id", project_id)):
            if value is not None:
                self.ids.setdefault(column, printable(value))

    def note_memberships(self, groups: Sequence[str], roles: Sequence[str]) -> None:
        """Tell the audit which groups and roles the caller has."""
        for column, names in (("group_ids", groups), ("role_names", roles)):
            if names:
                more = ["…"] if len(names) > MAX_NAMES else []
                self.ids[column] = ",".join([*map(printable, names[:MAX_NAMES]), *more])


RuleDescription = Callable[[World, str], Awaitable[dict[str, str] | None]]
"""What a rule that the check names says, for an operator who asks; None where it is not known."""
AccessCheck = Callable[[World, AccessRequest], Awaitable[str | None]]
"""The rule that refuses the call, as the audit names it, or None where it is allowed."""

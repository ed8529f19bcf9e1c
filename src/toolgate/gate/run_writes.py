"""Whether background work may go on now: what is switched off for everybody waits.

A run has no credential, so the rules are asked about the caller that may do most, as for pages.
"""

from collections.abc import Callable, Mapping
from typing import Any

from toolgate.gate.catalogue import AnyTool, Catalogue
from toolgate.gate.live_switches import LiveSwitches
from toolgate.gate.page_writes import MAY_MOST, tools_named
from toolgate.gate.policy import Policy
from toolgate.gate.tool import Pack
from toolgate.workflows.declarations import Workflow

READ_ONLY = "The server is read-only: no background work begins or goes on."
UNREAD = "The switches cannot be read, so no background work begins or goes on."


def why_runs_wait(
    workflows: Mapping[str, tuple[Pack, Workflow[Any]]],
    catalogue: Catalogue,
    policy: Policy,
    switches: LiveSwitches,
    *,
    read_only: bool,
) -> Callable[[str], str | None]:
    """Tells of a workflow, by its name with the pack's, why its runs wait; None where they go on.

    While nobody knows what is switched off, they wait.
    """
    tools: dict[str, list[AnyTool]] = {}

    def why(name: str) -> str | None:
        if read_only:
            return READ_ONLY
        if switches.unread:
            return UNREAD
        if name not in tools:
            pack, workflow = workflows[name]
            tools[name] = tools_named(workflow.acts_as, name, pack, catalogue)
        for tool in tools[name]:
            decision = policy.decide(MAY_MOST, tool)
            if not decision.allowed:
                what = tool.name if tool.name != name else f"Pack {tool.pack.name}"
                return f"{what} is switched off ({decision.rule}): its background work waits."
        return None

    return why

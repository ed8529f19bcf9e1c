"""Callers and ids of the demo data, and short ways to call."""

from dataclasses import replace
from typing import Any

from toolgate.gate.principal import AgentType, Principal, of_agent
from toolgate.testing import Kit
from toolgate.testing.kit import ADMIN

ID = "00000000-0000-4000-8000-0000000000{}"
ABSENT = "99999999-9999-4999-8999-999999999999"
WEBSITE, OF_ALICE, OF_BOB = ID.format("a1"), ID.format("a2"), ID.format("a3")
BUILD, SORT, PUBLISH = ID.format("b1"), ID.format("b2"), ID.format("b3")
BUILDING, SORTING = ID.format("c1"), ID.format("c2")

PM = of_agent(AgentType.PM, "pm")
PM_OF_ALICE = of_agent(AgentType.PM, "pm-alice", "alice")
PM_OF_BOB = of_agent(AgentType.PM, "pm-bob", "bob")
PA_OF_ALICE = of_agent(AgentType.PA, "pa-alice", "alice")
PA_OF_BOB = of_agent(AgentType.PA, "pa-bob", "bob")
WORKER = replace(
    of_agent(AgentType.WORKER, "worker", "alice"), bound={"task_id": BUILD, "project_id": WEBSITE}
)


async def result(kit: Kit, tool: str, as_: Principal = ADMIN, /, **arguments: Any) -> Any:
    """The result of a call that succeeds."""
    outcome = await kit.call(tool, as_, **arguments)
    assert outcome.error is None, outcome.body
    return outcome.body["result"]


async def refused(kit: Kit, tool: str, as_: Principal = ADMIN, /, **arguments: Any) -> Any:
    """The error of a call that fails: its type and message, and details where there are some."""
    outcome = await kit.call(tool, as_, **arguments)
    assert outcome.error is not None, outcome.body
    assert outcome.body["status"] == "error"
    return outcome.body["error"]

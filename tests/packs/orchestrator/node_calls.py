"""Nodes of the demo data, and a clock that tests move."""

from typing import Any

from tests.packs.orchestrator.calls import result
from tests.statements import noted_statements

from toolgate.gate.principal import Principal, of_node
from toolgate.testing import Kit
from toolgate.testing.kit import ADMIN

LOCAL, SANDBOX = "worker-01", "sandbox-us-east-1-01"
NODE = of_node(LOCAL, "key:local")
OTHER_NODE = of_node(SANDBOX, "key:sandbox")
NOW = 1_772_366_400.0
"""2026-03-01 12:00 UTC."""


def set_clock(kit: Kit, seconds: float) -> None:
    """Let the pack's clock stand at a time."""
    kit.app.worlds["orchestrator"].world.liveness.clock = lambda: seconds


async def node(kit: Kit, slug: str = LOCAL) -> Any:
    return await result(kit, "node.get", node_slug=slug)


async def status(kit: Kit, slug: str = LOCAL) -> str:
    return (await node(kit, slug))["status"]


async def report(kit: Kit, as_: Principal = NODE, **what: Any) -> Any:
    given: dict[str, Any] = {"capabilities": {}, **what}
    return await result(kit, "worker_node.report_capabilities", as_, **given)


async def every_page(kit: Kit, tool: str, limit: int, as_: Principal = ADMIN) -> list[Any]:
    """The entries of all pages."""
    found: list[Any] = []
    cursor: dict[str, str] = {}
    while True:
        page = await result(kit, tool, as_, limit=limit, **cursor)
        found += page["entries"]
        if "next_cursor" not in page:
            return found
        cursor = {"cursor": page["next_cursor"]}


async def count_statements(kit: Kit, tool: str, **arguments: Any) -> int:
    """How many statements on the pack's tables a call takes."""
    with noted_statements() as statements:
        await result(kit, tool, **arguments)
    return sum("orchestrator_" in one for one in statements)

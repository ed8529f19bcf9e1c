"""Whether a page may write now: what is switched off for everybody is off on pages too.

A page has no credential, so the rules are asked about the caller that may do most, the admin key:
what not even that one may do is not done on a page either.
"""

from collections.abc import Iterable
from typing import Any

from toolgate.gate.catalogue import AnyTool, Catalogue
from toolgate.gate.errors import WritesOff
from toolgate.gate.live_switches import LiveSwitches
from toolgate.gate.pages import Page
from toolgate.gate.policy import Policy
from toolgate.gate.principal import Role, of_role
from toolgate.gate.tool import Effect, NoArguments, Output, Pack, Tool

MAY_MOST = of_role(Role.ADMIN, "page")
FAMILY = "pages"


def written_as(page: Page[Any], pack: Pack, catalogue: Catalogue) -> list[AnyTool]:
    """What the rules are asked about before the page writes: its tools, or the page itself."""
    return tools_named(page.acts_as, page.path, pack, catalogue)


def tools_named(
    names: Iterable[str], actor: str, pack: Pack, catalogue: Catalogue
) -> list[AnyTool]:
    """These tools, as writes; where there are none, the one who acts in the shape of a tool."""
    named = [catalogue.find(name) for name in names]
    tools = [tool if tool.writes_if is None else tool.as_write for tool in named if tool]
    return tools or [_as_tool(actor, pack)]


async def check_page_writes(
    tools: list[AnyTool], policy: Policy, switches: LiveSwitches, path: str
) -> None:
    """Raise `WritesOff` where one of these is off, `Unavailable` where nobody knows."""
    await switches.check()
    for tool in tools:
        decision = policy.decide(MAY_MOST, tool)
        if not decision.allowed:
            raise WritesOff(path, decision.rule)


def _as_tool(actor: str, pack: Pack) -> AnyTool:
    """What writes and stands for no tool, in the shape that rules look at."""
    return Tool(
        name=actor,
        pack=pack,
        family=FAMILY,
        title=actor,
        description=actor,
        input=NoArguments,
        output=Output,
        role=Role.ADMIN,
        effect=Effect.WRITE,
        idempotent=False,
        open_world=False,
        example={},
        handler=_unreachable,
    )


async def _unreachable(_context: Any, _args: NoArguments) -> Output:
    raise AssertionError("a page is no tool")

"""A toolgate on standard input and output whose tools say what they should not.

python -m tests.transports.stdio_server FOLDER [all]

With `all`, the tools of the conformance suite and of the bridge's tests are there too.
"""

import os
import sys
from pathlib import Path
from typing import Any

import anyio
from tests.gate import tools
from tests.gate.tools import Said, a_tool

from toolgate.gate.context import Context
from toolgate.gate.offer import AnyOffer
from toolgate.testing import opened_kit
from toolgate.testing.kit import ADMIN
from toolgate.transports.mcp.stdio import serve_stdio


def offers() -> list[AnyOffer]:
    async def stray(ctx: Context, args: Any) -> Said:
        print("printed")
        os.write(1, b"written\n")
        await anyio.run_process(["echo", "by a child"], stdout=None)
        heard = await anyio.run_process(["cat"], stdin=None)
        return Said(heard=heard.stdout.decode() + sys.stdin.read())

    async def loaded(ctx: Context, args: Any) -> Said:
        return Said(sdk=any(name in sys.modules for name in ("mcp", "mcp_types")))

    return tools.offer(
        a_tool("stray", stray, pack="backend"), a_tool("loaded", loaded, pack="backend")
    )


def everything(folder: Path) -> list[AnyOffer]:
    from tests.conformance import plugin
    from tests.transports import bridge_server

    return [plugin.offer(), *tools.offer(*bridge_server.tools(folder))]


async def main() -> None:
    folder = Path(sys.argv[1])
    more = everything(folder) if "all" in sys.argv else []
    async with opened_kit(folder, demo_data=bool(more), plugins=[*offers(), *more]) as kit:
        await serve_stdio(kit.app.gate, ADMIN, underscore_names=True)
    print("after the end")


if __name__ == "__main__":
    anyio.run(main)

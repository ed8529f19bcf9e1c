"""A toolgate server with tools that run long, report, ask and announce.

python -m tests.transports.bridge_server '{"data": "DIR", "admin_key": "…", "server.port": 0}'

Prints its port when it listens. What its tools do is written into the data folder.
"""

import json
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from mcp.shared.subscriptions import ToolsListChanged
from tests.conformance import plugin
from tests.conformance.native import LIVE
from tests.gate.tools import Said, a_tool, offer

from toolgate import demo
from toolgate.app import opened
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.context import Context
from toolgate.http_server import Application, listen
from toolgate.settings import Settings, read_settings


def note(data: Path, word: str) -> None:
    with (data / "notes").open("a") as notes:
        notes.write(f"{word}\n")


def tools(data: Path) -> tuple[AnyTool, ...]:
    async def hold(ctx: Context, args: Any) -> Said:
        note(data, "started")
        try:
            await anyio.sleep_forever()
        finally:
            note(data, "ended")
        return Said()

    async def announce(ctx: Context, args: Any) -> Said:
        await LIVE.get().publish(ToolsListChanged())
        await LIVE.get().raw.session.send_tool_list_changed()
        return Said(announced=True)

    # What reaches out goes through the SDK, and can be cancelled.
    return (
        a_tool("hold", hold, pack="backend", open_world=True),
        a_tool("announce", announce, pack="backend", open_world=True),
    )


async def prepare(settings: Settings) -> None:
    async with opened(settings) as app:
        await demo.load_demo(app)


def main() -> None:
    warnings.simplefilter("ignore")  # `announce` calls what the SDK deprecates
    flags: dict[str, Any] = json.loads(sys.argv[1])
    settings = read_settings(flags=flags, environment={})
    anyio.run(prepare, settings)
    bound = listen(settings)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(bound.getsockname()[1], flush=True)
    app = Application(settings, [plugin.offer(), *offer(*tools(settings.data))])
    config = uvicorn.Config(app, lifespan="on", log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[bound])


if __name__ == "__main__":
    main()

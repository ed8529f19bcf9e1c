"""FastMCP with an echo and as many tools: no keys, rules, limits, audit. In its own environment.

python -m bench.apps.fast COUNT PORT
"""

import sys
from typing import Any

from fastmcp import FastMCP  # pyright: ignore[reportMissingImports]

from bench.apps.serving import serve


def built(count: int) -> Any:
    server: Any = FastMCP("bench")

    @server.tool(description="Say it again.")
    async def echo(text: str) -> dict[str, str]:
        return {"text": text}

    for number in range(1, count):

        async def filler(text: str) -> dict[str, str]:
            return {"text": text}

        server.tool(filler, name=f"filler_{number}", description=f"Say it again, {number}.")
    return server


if __name__ == "__main__":
    app = built(int(sys.argv[1])).http_app(path="/mcp", json_response=True, stateless_http=True)
    serve(app, int(sys.argv[2]))

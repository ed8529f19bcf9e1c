"""Talks to a server with the official Python SDK 1.x; run by an interpreter that has it.

python mcp_1.py URL                     with the key in TOOLGATE_KEY
python mcp_1.py PROGRAM ARGUMENT...     on standard input and output

Prints one JSON object: what was listed, a good answer, and a failed one.
"""

import asyncio
import json
import os
import sys
from contextlib import asynccontextmanager

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


@asynccontextmanager
async def connected(target, *arguments):
    if target.startswith("http"):
        headers = {"Authorization": f"Bearer {os.environ['TOOLGATE_KEY']}"}
        async with streamablehttp_client(target, headers=headers) as (read, write, _):
            yield read, write
    else:
        given = StdioServerParameters(command=target, args=arguments, env=dict(os.environ))
        async with stdio_client(given) as streams:
            yield streams


async def main():
    async with connected(*sys.argv[1:]) as streams, ClientSession(*streams) as session:
        await session.initialize()
        listed = await session.list_tools()

        async def get(document_id):
            wanted = {"collection": "users", "document_id": document_id}
            found = await session.call_tool("get_document", wanted)
            return found.model_dump(mode="json", by_alias=True, exclude_none=True)

        seen = {
            "tools": [tool.name for tool in listed.tools],
            "good": await get("abc123"),
            "failure": await get("nobody"),
        }
    print(json.dumps(seen))


asyncio.run(main())

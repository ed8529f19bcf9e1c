"""Talks to a server with FastMCP's client; run by an interpreter that has it.

python fastmcp_client.py URL                     with the key in TOOLGATE_KEY
python fastmcp_client.py PROGRAM ARGUMENT...     on standard input and output

Prints one JSON object: what was listed, a good answer, and a failed one.
"""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


def transport(target, *arguments):
    if target.startswith("http"):
        headers = {"Authorization": f"Bearer {os.environ['TOOLGATE_KEY']}"}
        return StreamableHttpTransport(target, headers=headers)
    return StdioTransport(command=target, args=list(arguments), env=dict(os.environ))


async def main():
    async with Client(transport(*sys.argv[1:])) as client:
        tools = await client.list_tools()

        async def get(document_id):
            wanted = {"collection": "users", "document_id": document_id}
            found = await client.call_tool("get_document", wanted, raise_on_error=False)
            return {
                "content": [{"text": one.text} for one in found.content],
                "structuredContent": found.structured_content,
                "isError": found.is_error,
            }

        seen = {
            "tools": [tool.name for tool in tools],
            "good": await get("abc123"),
            "failure": await get("nobody"),
        }
    print(json.dumps(seen))


asyncio.run(main())

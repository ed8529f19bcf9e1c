"""Arguments that a tool wants repeated in headers (`x-mcp-header`).

On standard input and output there are no headers, so a client does not send them; the bridge
adds what the listed schemas ask for.
"""

from collections.abc import Mapping
from typing import Any, cast

import orjson

from toolgate.transports.mcp.bridge.messages import Message, inner

MARK = b"x-mcp-header"
Paths = Mapping[tuple[str, ...], str]


class Mirrors:
    """What the tools listed so far want in headers."""

    def __init__(self) -> None:
        self._wanted: dict[str, Paths] = {}

    def learn(self, answer: bytes) -> Any:
        """Take note of an answer to `tools/list`; gives where the list goes on."""
        result = inner(orjson.loads(answer), "result")
        # The SDK is heavy, and few servers have such tools.
        from mcp.shared.inbound import find_invalid_x_mcp_header, x_mcp_header_map  # noqa: PLC0415

        tools = inner(result, "tools")
        for tool in cast("list[Any]", tools) if isinstance(tools, list) else []:
            name, schema = inner(tool, "name"), inner(tool, "inputSchema")
            if isinstance(name, str) and find_invalid_x_mcp_header(schema) is None:
                self._wanted[name] = x_mcp_header_map(schema)
        return inner(result, "nextCursor")

    def headers(self, message: Message) -> dict[str, str]:
        """The headers of a call; none for most tools."""
        wanted = self._wanted.get(message.target or "") if message.method == "tools/call" else None
        arguments = inner(message.params, "arguments")
        if not wanted or not isinstance(arguments, dict):
            return {}
        from mcp.shared.inbound import mcp_param_headers  # noqa: PLC0415

        return mcp_param_headers(wanted, cast("dict[str, Any]", arguments))


def header_value(text: str) -> str:
    """A text as a header can carry it."""
    if text.isascii() and text.isprintable() and text == text.strip() and text[:2] != "=?":
        return text
    from mcp.shared.inbound import encode_header_value  # noqa: PLC0415

    return encode_header_value(text)

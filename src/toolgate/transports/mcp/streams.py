"""The SDK's server on messages that are handed over, instead of on its own standard input."""

from types import TracebackType
from typing import Self

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from toolgate.gate.ids import Ids
from toolgate.gate.pipeline import Gate
from toolgate.gate.principal import Principal
from toolgate.transports.jsonrpc import INVALID_REQUEST, failure_line, id_in
from toolgate.transports.mcp.handover import Handover
from toolgate.transports.mcp.server import Caller, Raw, build_server


async def serve(
    handover: Handover, gate: Gate, principal: Principal, ids: Ids, underscore_names: bool
) -> None:
    """Answer what is handed over until that ends."""

    def who(_: Raw) -> Caller:
        return Caller(principal, ids.new())

    async def remember(raw: Raw, _: types.NotificationParams) -> None:
        """An older client is told of changes without asking for it."""
        gate.catalogue.listeners.append(raw.session.send_tool_list_changed)

    server = build_server(gate, who, transport="stdio", underscore_names=underscore_names)
    server.add_notification_handler("notifications/initialized", types.NotificationParams, remember)
    options = server.create_initialization_options()
    await server.run(Incoming(handover), Outgoing(handover), options)


class _Stream:
    """What the SDK expects of every stream; there is nothing to open or close."""

    def __init__(self, handover: Handover) -> None:
        self._handover = handover

    async def aclose(self) -> None:
        """Nothing is held."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> None:
        pass


class Incoming(_Stream):
    """The client's messages."""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        message = None
        while message is None:
            line = await self._handover.next()
            if line is None:
                raise StopAsyncIteration
            message = self._read(line)
        match message:
            case types.JSONRPCRequest():
                self._handover.asked(message.id, message.method, message.params)
            case types.JSONRPCNotification():
                self._handover.noticed(message.method, message.params)
            case _:
                pass  # an answer of the client's
        return SessionMessage(message)

    def _read(self, line: bytes) -> types.JSONRPCMessage | None:
        """The message on a line; one that the SDK cannot read is refused here."""
        try:
            return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            told = "Invalid Request: this is no message of MCP."
            self._handover.write(failure_line(id_in(line), INVALID_REQUEST, told))
            return None

    async def receive(self) -> SessionMessage | Exception:
        """The next message."""
        try:
            return await self.__anext__()
        except StopAsyncIteration:
            raise anyio.EndOfStream from None


class Outgoing(_Stream):
    """The SDK's messages, each written at once."""

    async def send(self, item: SessionMessage, /) -> None:
        """Write a message."""
        message = item.message
        line = message.model_dump_json(by_alias=True, exclude_unset=True).encode()
        match message:
            case types.JSONRPCResponse():
                self._handover.answers(message.id, message.result, line)
            case types.JSONRPCError():
                self._handover.answers(message.id, {}, line)
            case _:
                self._handover.write(line)

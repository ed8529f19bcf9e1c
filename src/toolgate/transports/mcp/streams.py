"""The SDK's server on messages that are handed over, instead of on its own standard input."""

from types import TracebackType
from typing import Self

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from toolgate.gate.ids import Ids
from toolgate.gate.pipeline import Gate
from toolgate.transports.jsonrpc import INVALID_REQUEST, failure_line, id_in
from toolgate.transports.mcp.handover import Handover
from toolgate.transports.mcp.sdk_requests import Caller, SdkContext
from toolgate.transports.mcp.server import build_server
from toolgate.transports.mcp.stdio_credential import CredentialHolder


async def serve(
    handover: Handover, gate: Gate, holder: CredentialHolder, ids: Ids, underscore_names: bool
) -> None:
    """Answer what is handed over until that ends."""

    def who(_: SdkContext) -> Caller:
        return Caller(holder.principal, ids.new(), good=holder.good_now)

    async def remember(raw: SdkContext, _: types.NotificationParams) -> None:
        """An older client is told of changes without asking for it."""

        async def tell() -> None:
            if await holder.good():
                await raw.session.send_tool_list_changed()

        gate.catalogue.listeners.append(tell)

    server = build_server(gate, who, transport="stdio", underscore_names=underscore_names)
    server.add_notification_handler("notifications/initialized", types.NotificationParams, remember)
    options = server.create_initialization_options()
    await server.run(Incoming(handover, holder), Outgoing(handover), options)


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
    """The client's messages; requests only as long as it may make them."""

    def __init__(self, handover: Handover, holder: CredentialHolder) -> None:
        super().__init__(handover)
        self._holder = holder

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        message = None
        while message is None:
            line = await self._handover.next()
            if line is None:
                raise StopAsyncIteration
            message = await self._admit(self._read(line))
        match message:
            case types.JSONRPCRequest():
                self._handover.note_request(message.id, message.method, message.params)
            case types.JSONRPCNotification():
                self._handover.note_notification(message.method, message.params)
            case _:
                pass  # an answer of the client's
        return SessionMessage(message)

    async def _admit(self, message: types.JSONRPCMessage | None) -> types.JSONRPCMessage | None:
        """The message, unless it is a request of a client whose credential has ended."""
        if not isinstance(message, types.JSONRPCRequest):
            return message
        refused = await self._holder.refusal(message.method, message.id)
        if refused is not None:
            self._handover.write(refused)
            return None
        return message

    def _read(self, line: bytes) -> types.JSONRPCMessage | None:
        """The message on a line; one that the SDK cannot read is refused here."""
        try:
            return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            message = "Invalid Request: this is no message of MCP."
            self._handover.write(failure_line(id_in(line), INVALID_REQUEST, message))
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
                self._handover.note_response(message.id, message.result, line)
            case types.JSONRPCError():
                self._handover.note_response(message.id, {}, line)
            case _:
                self._handover.write(line)

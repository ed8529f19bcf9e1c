"""When a connection is read, written and answered."""

from uvicorn.protocols.http.flow_control import FlowControl

from toolgate.transports.asgi import ASGIApp, Receive, Scope, Send


class Flow(FlowControl):
    """Reads no more while enough requests wait, however often uvicorn wants more to be read."""

    enough = False

    def resume_reading(self) -> None:
        """Read on, unless enough has come."""
        if not self.enough:
            super().resume_reading()

    def in_turn(self, app: ASGIApp) -> ASGIApp:
        """The application, but not before the client has read the answers before this one.

        Else each connection would hold two results: one that is not read, and one behind it.
        """

        async def in_turn(scope: Scope, receive: Receive, send: Send) -> None:
            await self.drain()
            if not self._transport.is_closing():
                await app(scope, receive, send)

        return in_turn

"""What an older client has agreed with the server, so that it can be agreed again."""

from dataclasses import dataclass, field

from toolgate.transports.mcp.bridge.messages import Message, inner

INITIALIZED = Message(
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}', method="notifications/initialized"
)


@dataclass(frozen=True, slots=True)
class BridgeSession:
    """The outcome of a handshake; of none, at first."""

    hello: Message | None = None
    """The client's `initialize`."""
    id: str | None = None
    version: str | None = None
    kept: dict[str, Message] = field(default_factory=dict[str, Message])
    """Requests that the server remembers for the session."""

    def keep(self, message: Message) -> None:
        """Take note of a request that must be sent again to a new session."""
        uri = inner(message.params, "uri")
        match message.method:
            case "logging/setLevel":
                self.kept[""] = message
            case "resources/subscribe" if isinstance(uri, str):
                self.kept[uri] = message
            case "resources/unsubscribe" if isinstance(uri, str):
                self.kept.pop(uri, None)
            case _:
                pass

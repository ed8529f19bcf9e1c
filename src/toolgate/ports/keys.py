"""Keys for nodes: made and ended by the pack that knows the nodes, in its own transaction."""

from typing import Protocol

from sqlalchemy import Connection


class NodeKeys(Protocol):
    """Makes keys that are good for one node's own tools, and ends them."""

    def issue(self, connection: Connection, node_slug: str) -> str:
        """A new key of this node; only its hash is stored."""
        ...

    def revoke_all(self, connection: Connection, node_slug: str) -> None:
        """End every key of this node; running servers refuse it within a second."""
        ...

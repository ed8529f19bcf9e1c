"""Keys that a pack makes and ends with its own records, in its own transaction."""

from typing import Protocol

from sqlalchemy import Connection


class PackKeys(Protocol):
    """Makes keys that are good for one node's own tools, and ends them and those of agents."""

    def issue(self, connection: Connection, node_slug: str) -> str:
        """A new key of this node; only its hash is stored."""
        ...

    def revoke_all(self, connection: Connection, node_slug: str) -> None:
        """End every key of this node; running servers refuse it within a second."""
        ...

    def is_agents(self, connection: Connection, key_id: str) -> bool:
        """Whether this is the id of an agent's key that nobody has revoked."""
        ...

    def revoke_agents(self, connection: Connection, user_id: str) -> None:
        """End the key of every agent that works for this user."""
        ...

"""Where a page of a list begins, and what names the one after it."""

from collections.abc import Sequence
from typing import Any

from toolgate.packs.orchestrator.world import OrchestratorWorld


def key_before(world: OrchestratorWorld, listing: Sequence[Any], cursor: str | None) -> Any:
    """The key of the row that a page follows, in a list by one key; None for the first page."""
    position = world.cursors.read(listing, cursor)
    return position[0] if position else None


def next_cursor(
    world: OrchestratorWorld, listing: Sequence[Any], last: Sequence[Any] | None
) -> dict[str, str]:
    """The field of a page that others follow: where its last row is; None at the end."""
    return {} if last is None else {"next_cursor": world.cursors.make(listing, last)}

"""The tools that a caller sees, for handlers that speak about tools.

Packs are opened before there is a catalogue, so it is filled in once the gate is assembled.
"""

from collections.abc import Callable, Sequence
from typing import Any

from toolgate.gate.principal import Principal
from toolgate.gate.tool import Tool

Visible = Callable[[Principal], Sequence[Tool[Any, Any, Any]]]


class ToolDirectory:
    """What exists for whom."""

    def __init__(self) -> None:
        self._visible: Visible | None = None

    def fill(self, visible: Visible) -> None:
        """From now on, say what this function says."""
        self._visible = visible

    def visible(self, principal: Principal) -> Sequence[Tool[Any, Any, Any]]:
        """The tools that exist for a caller; those that are switched off are not among them."""
        return self._visible(principal) if self._visible else ()

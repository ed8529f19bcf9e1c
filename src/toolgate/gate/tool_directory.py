"""The tools that a caller sees, for handlers that speak about tools.

Packs are opened before there is a catalogue, so it is filled in once the gate is assembled.
"""

from collections.abc import Callable, Sequence
from typing import Any

from toolgate.gate.errors import GateError
from toolgate.gate.principal import Principal
from toolgate.gate.tool import Tool

Visible = Callable[[Principal], Sequence[Tool[Any, Any, Any]]]
RefusalOf = Callable[[Principal, str], GateError | None]


class ToolDirectory:
    """What exists for whom."""

    def __init__(self) -> None:
        self._visible: Visible | None = None
        self._is_off: Callable[[Principal, str], bool] | None = None
        self._refusal_of: RefusalOf | None = None

    def fill(
        self, visible: Visible, is_off: Callable[[Principal, str], bool], refusal_of: RefusalOf
    ) -> None:
        """From now on, say what these functions say."""
        self._visible, self._is_off, self._refusal_of = visible, is_off, refusal_of

    def visible(self, principal: Principal) -> Sequence[Tool[Any, Any, Any]]:
        """The tools that exist for a caller; those that are switched off are not among them."""
        return self._visible(principal) if self._visible else ()

    def is_off(self, principal: Principal, name: str) -> bool:
        """Whether a tool is hidden from this caller only because it is switched off."""
        return self._is_off is not None and self._is_off(principal, name)

    def may_call(self, principal: Principal, name: str) -> bool:
        """Whether a call of this tool would not be refused for who makes it."""
        return self._refusal_of is not None and self._refusal_of(principal, name) is None

    def check(self, principal: Principal, name: str) -> None:
        """Raise what a call of this tool would be refused with.

        For a tool that does the work of another one: who may not call that may not do it here.
        """
        if self._refusal_of and (refusal := self._refusal_of(principal, name)):
            raise refusal

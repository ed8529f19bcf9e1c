"""MCP resources: a stable address for what a tool answers.

Reading one is a call of its tool, so policy, limits and audit are the tool's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolgate.gate.path_templates import VARIABLE, pattern_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One address, or a pattern of addresses with `{variables}`, and the call behind it."""

    uri: str
    name: str
    title: str
    description: str
    tool: str
    arguments: Mapping[str, Any]
    mime_type: str = "application/json"

    @property
    def template(self) -> bool:
        """Whether the address has variables."""
        return VARIABLE.search(self.uri) is not None

    def arguments_for(self, uri: str) -> dict[str, Any] | None:
        """The call's arguments for this address; None when it is not ours."""
        match = pattern_of(self.uri).fullmatch(uri)
        return None if match is None else {**self.arguments, **match.groupdict()}

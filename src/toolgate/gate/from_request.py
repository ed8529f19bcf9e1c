"""Arguments that an HTTP request fills in from its headers and cookies."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic

from toolgate.gate.context import World


@dataclass(frozen=True, slots=True)
class RequestHeaders:
    """What of an HTTP request an argument may be taken from."""

    headers: Callable[[str], str | None]
    """The value of a header by its name in lower case."""
    cookies: Callable[[], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Header:
    """A header that a request may have."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FromRequest(Generic[World]):
    """One argument, for every tool of a pack that takes it and has a route of its own."""

    argument: str
    headers: tuple[Header, ...]
    value: Callable[[World, RequestHeaders], Awaitable[str]]
    """Asked after policy and limits, so that it tells nothing to those who may not call."""

    @property
    def preferred(self) -> str:
        """The header that a request should use."""
        return self.headers[0].name

"""Addresses of a pack over plain HTTP that are no tools: a webhook, a link in a mail, a page.

They are reached without a credential: the handler itself finds out who calls, from a signature or
from a secret in the link. Everything that a person or an agent asks for is a tool instead.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Generic

from toolgate.db.transactions import Transaction
from toolgate.gate.context import World
from toolgate.gate.errors import GateError
from toolgate.gate.path_templates import VARIABLE
from toolgate.gate.principal import Kind, Principal

MAX_BODY = 64 * 1024
CALLS_A_MINUTE = 600
HTML = "text/html; charset=utf-8"
JSON = "application/json"

Begin = Callable[[str, Principal], AbstractAsyncContextManager[Transaction]]
"""Begins a transaction that commits with an audit row of the request: the rule that allowed it, and
who is told to have done it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """One request to a page."""

    method: str
    path: str
    parameters: Mapping[str, str]
    """What the places in the page's path stand for."""
    query: Mapping[str, str]
    """The first value of each."""
    headers: Mapping[str, str]
    """By their names in lower case; the first of each."""
    body: bytes
    request_id: str
    transaction: Begin
    """All that a page writes is written in one. Raises `WritesOff` where writes, the pack or a tool
    of `Page.acts_as` are switched off."""
    check_writes: Callable[[], Awaitable[None]]
    """Raises what `transaction` would, for a page that shows what can be done."""


@dataclass(frozen=True, slots=True)
class PageAnswer:
    """What is sent back."""

    status: int = 200
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[World]):
    """An address, and what answers there."""

    path: str
    """With `{name}` for parts that differ."""
    methods: tuple[str, ...]
    handler: Callable[[World, PageRequest], Awaitable[PageAnswer]]
    """May raise a `GateError`, which is told in its own words."""
    acts_as: tuple[str, ...] = ()
    """The tools that do the same for who has a credential. Where one of them is switched off for
    everybody, the page writes nothing."""
    tell: Callable[[World, GateError], PageAnswer] | None = None
    """How a refusal or a failure is shown to a person; without it, as JSON. The status and the
    headers are those of the error."""
    body_bytes: int = MAX_BODY
    calls_per_minute: int = CALLS_A_MINUTE
    """Of one peer."""

    @property
    def shape(self) -> str:
        """The path without the names in it."""
        return VARIABLE.sub("{}", self.path)


def outside_caller(id: str) -> Principal:
    """Who is told to have done what a page brought about, such as `webhook:stripe`."""
    return Principal(kind=Kind.ANONYMOUS, id=id)

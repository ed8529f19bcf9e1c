"""The door: what a pack brings in, and what it is given."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from toolgate.db.engine import Database
from toolgate.db.schemas import Schema
from toolgate.gate.context import World
from toolgate.gate.from_request import FromRequest
from toolgate.gate.prompts import Prompt
from toolgate.gate.resources import Resource
from toolgate.gate.tool import Pack, Tool
from toolgate.outbound.client import Outbound
from toolgate.ports.documents import DocumentStore
from toolgate.setting_types import Section

Settings = TypeVar("Settings", bound=Section)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What a pack is given while the gate is open."""

    database: Database
    documents: DocumentStore
    """The pack's own."""
    data: Path
    """The data folder."""
    outbound: Outbound
    """The way out over HTTP."""


class NotForDemo(RuntimeError):
    """Demo data was not loaded; the message says why."""


LoadDemo = Callable[[World, Site], Awaitable[int]]
"""Stores the pack's demo data if the pack holds nothing yet; returns how many records it stored.

Raises `NotForDemo` where it cannot.
"""


@dataclass(frozen=True, kw_only=True)
class Offer(Generic[World, Settings]):
    """Everything that a pack brings in."""

    pack: Pack
    tools: tuple[Tool[Any, Any, World], ...] = ()
    resources: tuple[Resource, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    in_world: "Callable[[World], Offer[World, Settings]] | None" = None
    """The same offer, with the resources and prompts that its open ports call for."""
    settings: type[Settings] | None = None
    """Its section of the settings, named like the pack."""
    open: Callable[[Site, Settings], AbstractAsyncContextManager[World]] | None = None
    """Opens its ports, and closes them with the server."""
    schema: Schema | None = None
    documents: bool = False
    """Whether it keeps documents; `documents.NAME` is then the setting that says where."""
    rules: str | None = None
    """Cedar."""
    demo: LoadDemo[World] | None = None
    commands: str | None = None
    """`module:function` of its command group, imported only when it is typed."""
    from_request: FromRequest[World] | None = None
    """The argument that an HTTP request fills in from its headers."""


AnyOffer = Offer[Any, Any]

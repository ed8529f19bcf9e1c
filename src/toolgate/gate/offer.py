"""The door: what a pack brings in, what it is given, and which packs are not let in."""

import inspect
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

from sqlalchemy import Connection

from toolgate.db.engine import Database
from toolgate.db.schemas import Schema
from toolgate.gate.access_checks import AccessCheck, RuleDescription
from toolgate.gate.context import World
from toolgate.gate.cursors import Cursors
from toolgate.gate.epochs import Epoch
from toolgate.gate.from_request import FromRequest
from toolgate.gate.pages import Page
from toolgate.gate.prompts import Prompt
from toolgate.gate.resources import Resource
from toolgate.gate.tool import Pack, Tool
from toolgate.gate.tool_directory import ToolDirectory
from toolgate.outbound.client import Outbound
from toolgate.ports.blobs import Blobs
from toolgate.ports.documents import DocumentStore
from toolgate.ports.forge import Forge
from toolgate.ports.keys import PackKeys
from toolgate.ports.tree import TreeStore
from toolgate.sections import Settings as GateSettings
from toolgate.setting_types import BadSettings, Section
from toolgate.workflows.declarations import Workflow
from toolgate.workflows.runs import Workflows

Settings = TypeVar("Settings", bound=Section)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What a pack is given while the gate is open."""

    database: Database
    documents: DocumentStore
    """The pack's own."""
    tree: Callable[[], TreeStore]
    """Opens the pack's own."""
    blobs: Callable[[], Blobs]
    """Opens the pack's own."""
    data: Path
    """The data folder."""
    outbound: Outbound
    """The way out over HTTP."""
    cursors: Cursors
    """Makes and reads the cursors of lists."""
    tools: ToolDirectory
    """Which tools a caller sees, while calls are answered."""
    epoch: Epoch
    """Counts up when an operator has changed a switch, or a rule of a pack."""
    keys: PackKeys
    """Makes and ends keys with the records of a pack."""
    base_url: str
    """Where people reach this server, without a slash at the end."""
    sections: Mapping[str, Section]
    """The settings in the sections that the pack brought along (`Offer.sections`), and `google`:
    credentials are given once for all that is Google's."""
    workflows: Workflows
    """Starts the pack's background work, and tells how far it has come."""
    forge: Callable[[str, str], Forge]
    """Opens the Git repository at a URL; the embedded one has the name that is given, too."""

    def section(self, name: str, kind: type[Settings]) -> Settings:
        """The settings in one of these sections."""
        section = self.sections[name]
        assert isinstance(section, kind)
        return section


class NotForDemo(RuntimeError):
    """Demo data was not loaded; the message says why."""


LoadDemo = Callable[[World, Site], Awaitable[int]]
"""Stores the pack's demo data if the pack holds nothing yet; returns how many records it stored.

Raises `NotForDemo` where it cannot.
"""


KeyWarnings = Callable[[Connection, Mapping[str, str]], Sequence[str]]
"""Of ids by their names (`user_id`, `task_id`, …), sentences on those for which it has no record,
and on those that contradict one another.

A name that says nothing to the pack is none of its business.
"""


Examine = Callable[[GateSettings, Outbound], Awaitable[str]]
"""Looks whether something outside can be used, without changing it.

Returns a sentence on it; raises with a message that says what is wrong, and what to do:
`ServiceWarning` where it can be used all the same.
"""


class ServiceWarning(Exception):
    """Something outside can be used, though not as anybody would want it."""


FindRepository = Callable[[GateSettings], tuple[str, str]]
"""The URL and the branch of a Git repository that the settings name."""


@dataclass(frozen=True, kw_only=True)
class Offer(Generic[World, Settings]):
    """Everything that a pack brings in."""

    pack: Pack
    tools: tuple[Tool[Any, Any, World], ...] = ()
    resources: tuple[Resource, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    pages: tuple[Page[World], ...] = ()
    in_world: "Callable[[World], Offer[World, Settings]] | None" = None
    """The same offer, with the resources and prompts that its open ports call for."""
    settings: type[Settings] | None = None
    """Its section of the settings, named like the pack."""
    sections: Mapping[str, type[Section]] = field(default_factory=dict[str, type[Section]])
    """Further sections, by their names: `mail` for settings such as `mail.url`."""
    open: Callable[[Site, Settings], AbstractAsyncContextManager[World]] | None = None
    """Opens its ports, and closes them with the server."""
    schema: Schema | None = None
    documents: bool = False
    """Whether it keeps documents; `documents.NAME` is then the setting that says where."""
    rules: str | None = None
    """Cedar."""
    complete: bool = True
    """Whether every tool that its rules name is there; else a misspelled name goes unnoticed."""
    workflows: tuple[Workflow[World], ...] = ()
    """Its background work."""
    demo: LoadDemo[World] | None = None
    commands: str | None = None
    """`module:function` of its command group, imported only when it is typed."""
    from_request: FromRequest[World] | None = None
    """The argument that an HTTP request fills in from its headers."""
    access: AccessCheck[World] | None = None
    """Its own say on a call of its tools, once the arguments are known."""
    access_rule: RuleDescription[World] | None = None
    """What one of the rules says that `access` names."""
    checks: Mapping[str, Examine] = field(default_factory=dict[str, Examine])
    """What `toolgate doctor` looks at besides, by the names it prints."""
    repositories: Mapping[str, FindRepository] = field(default_factory=dict[str, FindRepository])
    """Git repositories that it commits to, by the same names; they are looked at, too."""
    key_warnings: KeyWarnings | None = None
    """Asked about the ids of an agent's new key, so that whoever makes it can be warned."""


AnyOffer = Offer[Any, Any]


NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
OWN = "own"
"""The pack of a user's own tools."""
COMMANDS = frozenset(
    [
        "audit",
        "backup",
        "call",
        "connect",
        "db",
        "doctor",
        "extend",
        "grants",
        "init",
        "keys",
        "mcp",
        "packs",
        "policy",
        "restore",
        "serve",
        "switch",
        "tools",
        "users",
        "why",
        "workflows",
    ]
)
"""What the command line has itself."""
PATHS = frozenset(
    [
        "/",
        "/mcp",
        "/backend-manager/mcp",
        "/v1/tools",
        "/rpc",
        "/openapi.json",
        "/metrics",
        "/healthz",
        "/readyz",
        "/.well-known",
        "/favicon.svg",
        "/favicon.ico",
        "/authorize",
        "/token",
        "/register",
        "/revoke",
    ]
)
"""What the server answers itself, with all that is below; a route there would never be reached."""


HOW_TO_OPEN = "make it an async generator function under @contextlib.asynccontextmanager"
COMMAND_GROUP = re.compile(r"[\w.]+:\w+")


class BadOffer(BadSettings):
    """A pack would get in the way of toolgate or of another pack; the message says where."""


def opening(offer: AnyOffer, site: Site, section: Any) -> AbstractAsyncContextManager[Any]:
    """What opens the ports of a pack; raises `BadOffer` where it is no context manager."""
    assert offer.open is not None
    manager: Any = offer.open(site, section)
    if not hasattr(manager, "__aenter__"):
        if inspect.iscoroutine(manager):
            manager.close()
        raise BadOffer(f"Pack {offer.pack.name!r}, field open: {HOW_TO_OPEN}.")
    body = getattr(manager, "gen", None)  # of a function under @asynccontextmanager
    if inspect.iscoroutine(body):
        body.close()
        raise BadOffer(
            f"Pack {offer.pack.name!r}, field open: yield its world instead of returning it."
        )
    return manager


def check_offer(offer: AnyOffer, others: Sequence[AnyOffer]) -> None:
    """Raise `BadOffer` unless this pack can be used beside the others."""
    for name, problem in _problems(offer, others):
        raise BadOffer(f"Pack {offer.pack.name!r}, field {name}: {problem}.")


def _problems(offer: AnyOffer, others: Sequence[AnyOffer]) -> Iterator[tuple[str, str]]:
    name = offer.pack.name
    if not NAME.fullmatch(name):
        yield "pack", "use a-z, 0-9 and _ in its name, a letter first"
    if name in GateSettings.model_fields:
        yield "pack", "toolgate has settings of that name. Give the pack another name"
    if name == OWN:
        yield "pack", "tools of your own are called that. Give the pack another name"
    yield from _wrong_types(offer)
    if offer.commands and name in COMMANDS:
        yield "commands", f"toolgate has a command {name}. Give the pack another name"
    if offer.schema:
        yield from (("schema", problem) for problem in _schema_problems(name, offer.schema))
    for section in offer.sections:
        if section in GateSettings.model_fields or any(section in one.sections for one in others):
            yield "sections", f"there is a section {section} already. Give it another name"
    yield from _reserved_paths(offer)
    yield from _doubles(offer, others)


def _wrong_types(offer: AnyOffer) -> Iterator[tuple[str, str]]:
    """What a type checker would have told; without one, it fails far from where it was written."""
    tools: Any = offer.tools
    if not isinstance(tools, tuple | list):
        yield "tools", "give the declared tools, such as tools=tuple(family.tools)"
    elif strange := [one for one in cast("Sequence[Any]", tools) if not isinstance(one, Tool)]:
        kind = type(strange[0]).__name__
        yield "tools", f"one is a {kind}. Give the declared tools, tools=tuple(family.tools)"
    section: Any = offer.settings
    if section is not None and not (isinstance(section, type) and issubclass(section, Section)):
        yield "settings", "give a class that is derived from Section (of toolgate.pack)"
    if offer.commands and not COMMAND_GROUP.fullmatch(offer.commands):
        yield "commands", f"write it as module:function, not {offer.commands!r}"


def _schema_problems(pack: str, schema: Schema) -> Iterator[str]:
    for table in schema.tables.tables:
        if not table.startswith(f"{pack}_"):
            yield f"call table {table} {pack}_{table}, so that it is no other's"
    if schema.version_table != f"{pack}_version":
        yield f"call the version table {pack}_version, not {schema.version_table}"
    if not schema.revisions:
        yield f"{schema.migrations} has no file such as 0001_first.py, named by its revision"
    for file, revision in schema.misnamed:
        yield f"{file} in {schema.migrations} has the revision {revision}. Begin its name with that"
    for file in schema.without_upgrade:
        yield f"{file} in {schema.migrations} needs a function: `def upgrade() -> None:`"


def _reserved_paths(offer: AnyOffer) -> Iterator[tuple[str, str]]:
    """Routes of tools, and pages, that would never be reached."""
    for tool in offer.tools:
        if tool.route and _is_reserved(tool.route.path):
            conflict = (
                f"{tool.name} has the route {tool.route.path}, which the server answers itself"
            )
            yield "tools", f"{conflict}. Choose another path"
    routed = {tool.route.shape for tool in offer.tools if tool.route}
    for page in offer.pages:
        if _is_reserved(page.path) or page.shape in routed:
            yield "pages", f"something else answers at {page.path}. Choose another path"
        if unknown := set(page.acts_as) - {tool.name for tool in offer.tools}:
            names = ", ".join(sorted(unknown))
            yield "pages", f"{page.path} acts as {names}, which is no tool of the pack"
    for one in offer.workflows:
        if unknown := set(one.acts_as) - {tool.name for tool in offer.tools}:
            names = ", ".join(sorted(unknown))
            yield "workflows", f"{one.name} acts as {names}, which is no tool of the pack"


def _is_reserved(path: str) -> bool:
    return path in PATHS or any(path.startswith(f"{one}/") for one in PATHS - {"/"})


def _doubles(offer: AnyOffer, others: Sequence[AnyOffer]) -> Iterator[tuple[str, str]]:
    """Prompts and resources that have one name: only one of them would be found."""
    holders = {key: other.pack.name for other in others for key in _names(other)}
    for kind, name in _names(offer):
        if holder := holders.get((kind, name)):
            yield kind, f"two are called {name!r}, the first in pack {holder!r}. Rename one"
        holders[kind, name] = offer.pack.name


def _names(offer: AnyOffer) -> list[tuple[str, str]]:
    prompts = [("prompts", prompt.name) for prompt in offer.prompts]
    return prompts + [("resources", resource.uri) for resource in offer.resources]

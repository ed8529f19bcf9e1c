"""Which tools there are."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from toolgate.gate.offer import AnyOffer
from toolgate.gate.pages import Page
from toolgate.gate.prompts import Prompt
from toolgate.gate.resources import Resource
from toolgate.gate.tool import Pack, Target, Tool

AnyTool = Tool[Any, Any, Any]


class DuplicateTool(ValueError):
    """Two tools want one name."""


class DuplicateRoute(ValueError):
    """Two tools want one route."""


@dataclass(frozen=True, slots=True)
class OpenPack:
    """The open ports of a pack."""

    world: Any = None
    separate: frozenset[Target] = frozenset({Target.OUTSIDE})
    """What cannot join a transaction of the database."""


UNOPENED = OpenPack()


class OpenPage(NamedTuple):
    """A page with the ports of its pack."""

    page: Page[Any]
    pack: Pack
    world: Any


class Catalogue:
    """All tools by name, in the order they were offered; dots and underscores are one spelling.

    A user's own tool takes the place of a built-in one of its name. The own tools, and which tools
    are switched off, can change while the gate is open; `epoch` then counts up, so that what was
    made from the old ones can be made again.
    """

    def __init__(
        self,
        offers: Iterable[AnyOffer],
        own: AnyOffer | None = None,
        *,
        opened: Mapping[str, OpenPack] | None = None,
        changing: bool = False,
    ) -> None:
        self._opened = opened or {}
        self.offers = tuple(self._in_world(offer) for offer in offers)
        self.changing = changing
        """Whether the own tools may change."""
        self.resources: list[Resource] = []
        self.prompts: dict[str, Prompt] = {}
        for offer in self.offers:
            self.resources.extend(offer.resources)
            self.prompts.update({prompt.name: prompt for prompt in offer.prompts})
        self.pages = [
            OpenPage(page, offer.pack, self._opened.get(offer.pack.name, UNOPENED).world)
            for offer in self.offers
            for page in offer.pages
        ]
        self.epoch = 0
        self.listeners: list[Callable[[], Awaitable[None]]] = []
        """Told after the tools have changed."""
        self._arrange(own)

    async def renew(self, own: AnyOffer) -> None:
        """Put these tools of the user's in the place of the former ones, and tell who listens."""
        self._arrange(own)
        await self.announce()

    async def announce(self) -> None:
        """Tell who listens that other tools are there, or are seen, than before."""
        self.epoch += 1
        for tell in self.listeners:
            await tell()

    def _arrange(self, own: AnyOffer | None) -> None:
        built_in = _by_alias(tool for offer in self.offers for tool in self._bound(offer))
        theirs = _by_alias(self._bound(own) if own else ())
        self.replaced = {theirs[alias].name: built_in[alias] for alias in theirs.keys() & built_in}
        """The built-in tools whose place a user's own took, by its name."""
        # One name, one tool: a route leads to the tool that took its tool's place.
        theirs = {
            alias: replace(tool, route=built_in[alias].route) if alias in built_in else tool
            for alias, tool in theirs.items()
        }
        every = (built_in | theirs).values()
        _check_routes(every)
        self._tools = {tool.name: tool for tool in every}
        self._spellings = {tool.alias: tool for tool in every} | self._tools

    def _in_world(self, offer: AnyOffer) -> AnyOffer:
        opened = self._opened.get(offer.pack.name)
        return offer.in_world(opened.world) if opened and offer.in_world else offer

    def _bound(self, offer: AnyOffer) -> Iterator[AnyTool]:
        opened = self._opened.get(offer.pack.name, UNOPENED)
        for tool in offer.tools:
            yield tool.bind(opened.world, opened.separate, offer.from_request, offer.access)

    def find(self, name: str) -> AnyTool | None:
        """The tool of this name in either spelling, or None."""
        return self._spellings.get(name)

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)


def _by_alias(tools: Iterable[AnyTool]) -> dict[str, AnyTool]:
    by_alias: dict[str, AnyTool] = {}
    for tool in tools:
        if tool.alias in by_alias:
            raise DuplicateTool(f"Two tools are called {tool.name!r}; rename one of them.")
        by_alias[tool.alias] = tool
    return by_alias


def _check_routes(tools: Iterable[AnyTool]) -> None:
    """Refuse two tools with one route, or with one path whose parts have two names."""
    at_route: dict[tuple[str, str], AnyTool] = {}
    at_path: dict[str, AnyTool] = {}
    for tool in tools:
        if (route := tool.route) is None:
            continue
        other = at_route.setdefault((route.method, route.shape), tool)
        if other is not tool:
            message = "Change one, or enable only one of the packs (setting packs.enabled)."
            raise DuplicateRoute(f"Two tools have one route: {_both(other, tool)}. {message}")
        other = at_path.setdefault(route.shape, tool)
        if other.route and other.route.path != route.path:
            message = "Give its parts the same names."
            raise DuplicateRoute(
                f"Two tools name one path differently: {_both(other, tool)}. {message}"
            )


def _both(*tools: AnyTool) -> str:
    return " and ".join(
        f"{tool.name!r} of pack {tool.pack.name!r} ({tool.route.method} {tool.route.path})"
        for tool in tools
        if tool.route
    )

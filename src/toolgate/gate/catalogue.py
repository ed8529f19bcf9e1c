"""Which tools there are."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from toolgate.gate.prompts import Prompt
from toolgate.gate.resources import Resource
from toolgate.gate.tool import Tool

AnyTool = Tool[Any, Any]


class DuplicateTool(ValueError):
    """Two tools want one name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What a pack, or a plug-in, brings along."""

    tools: tuple[AnyTool, ...] = ()
    resources: tuple[Resource, ...] = ()
    prompts: tuple[Prompt, ...] = ()


class Catalogue:
    """All tools by name, in the order they were offered; dots and underscores are one spelling."""

    def __init__(self, offers: Iterable[Offer]) -> None:
        self._tools: dict[str, AnyTool] = {}
        self._spellings: dict[str, AnyTool] = {}
        self.resources: list[Resource] = []
        self.prompts: dict[str, Prompt] = {}
        for offer in offers:
            self._add(offer)

    def _add(self, offer: Offer) -> None:
        for tool in offer.tools:
            if tool.alias in self._spellings:
                raise DuplicateTool(f"Two tools are called {tool.name!r}; rename one of them.")
            self._tools[tool.name] = tool
            self._spellings[tool.alias] = tool
            self._spellings[tool.name] = tool
        self.resources.extend(offer.resources)
        self.prompts.update({prompt.name: prompt for prompt in offer.prompts})

    def find(self, name: str) -> AnyTool | None:
        """The tool of this name in either spelling, or None."""
        return self._spellings.get(name)

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

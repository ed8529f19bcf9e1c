"""Tools with routes of their own, made up for tests: each says back what it was given."""

from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from tests.gate.tools import Said, a_tool

from toolgate.gate.catalogue import AnyTool
from toolgate.gate.context import Context
from toolgate.gate.fields import Whole
from toolgate.gate.principal import Role
from toolgate.gate.tool import Input, Route


class Filter(BaseModel):
    """An object among the arguments."""

    model_config = ConfigDict(extra="forbid", strict=True)

    a: int
    b: list[str] = []


class Everything(Input):
    """One argument of each kind."""

    word: str = ""
    maybe_word: str | None = None
    count: int = 0
    whole: Whole = 0
    small: int = Field(default=0, ge=-5, le=5)
    ratio: float = 0.0
    active: bool = False
    maybe: bool | None = None
    either: int | bool = 0
    level: Literal[1, 2] = 1
    kind: Literal["a", "b"] = "a"
    tags: list[str] = Field(default=[])
    numbers: list[int] = Field(default=[])
    maybe_numbers: list[int] | None = None
    flags: list[bool] = Field(default=[], max_length=3)
    filter: Filter | None = None
    filters: list[Filter] = Field(default=[])
    any_object: dict[str, Any] = Field(default={})
    any_list: list[Any] = Field(default=[])
    anything: Any = None


async def say_back(ctx: Context[Any], args: Any) -> Said:
    """What arrived: as text, since an answer has no integers over 64 bits."""
    return Said(got=repr(args.model_dump()))


def routed(
    name: str,
    path: str,
    method: str = "GET",
    *,
    takes: type[Input] = Everything,
    pack: str = "orchestrator",
    role: Role = Role.ADMIN,
) -> AnyTool:
    """A tool at this route."""
    tool = a_tool(name, say_back, takes=takes, pack=pack, role=role)
    return replace(tool, route=Route(path, method))

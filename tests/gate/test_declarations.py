"""What a tool is declared with is checked there, not at its first call."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.gate.tools import PACKS

from toolgate.gate.context import Context
from toolgate.gate.principal import Role
from toolgate.gate.tool import BadDeclaration, Effect, Family, NoArguments, Output


async def good(ctx: Context[Any], args: NoArguments) -> Output:
    """Do it."""
    return Output()


async def silent(ctx: Context[Any], args: NoArguments) -> Output:
    return Output()


def plain(ctx: Context[Any], args: NoArguments) -> Output:
    """Do it."""
    return Output()


@pytest.mark.parametrize(
    ("name", "handler", "more", "told"),
    [
        ("zoo task", good, {}, "'zoo task' is no tool's name: letters, digits, _ . - only."),
        ("zoo", plain, {}, "zoo: its handler must be `async def`."),
        ("zoo", silent, {}, "zoo: its handler needs a docstring, the description."),
        ("zoo", good, {"seconds": 0}, "zoo: seconds must be more than 0."),
    ],
    ids=["name", "not async", "no docstring", "no time"],
)
def test_a_mistake_is_told_when_the_tool_is_declared(
    name: str, handler: Callable[..., Any], more: dict[str, Any], told: str
) -> None:
    family = Family("tests", PACKS["backend"])
    with pytest.raises(BadDeclaration) as refused:
        family.tool(name, role=Role.ADMIN, effect=Effect.READ, title="Zoo", **more)(handler)
    assert str(refused.value) == told
    assert family.tools == []

"""What a tool is declared with is checked there, not at its first call."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.gate.tools import PACKS, a_tool, offer

from toolgate.gate.context import Context
from toolgate.gate.errors import InvalidArguments
from toolgate.gate.principal import Role
from toolgate.gate.tool import BadDeclaration, Effect, Family, NoArguments, Output, Target
from toolgate.testing import opened_kit


async def good(ctx: Context[Any], args: NoArguments) -> Output:
    """Do it."""
    return Output()


async def silent(ctx: Context[Any], args: NoArguments) -> Output:
    return Output()


async def bare(ctx, args) -> Output:  # type: ignore[no-untyped-def]
    """Do it."""
    return Output()


async def of_dict(ctx: Context[Any], args: dict[str, Any]) -> Output:
    """Do it."""
    return Output()


async def to_dict(ctx: Context[Any], args: NoArguments) -> dict[str, Any]:
    """Do it."""
    return {}


def plain(ctx: Context[Any], args: NoArguments) -> Output:
    """Do it."""
    return Output()


@pytest.mark.parametrize(
    ("name", "handler", "more", "told"),
    [
        (
            "zoo task",
            good,
            {},
            "'zoo task' is not a valid tool name: use letters, digits, `_`, `.` and `-`.",
        ),
        ("zoo", plain, {}, "zoo: its handler must be `async def`."),
        ("zoo", silent, {}, "zoo: its handler needs a docstring, the description."),
        ("zoo", good, {"seconds": 0}, "zoo: seconds must be more than 0."),
        (
            "zoo",
            good,
            {"role": "boss"},
            "zoo: role must be one of: Role.PUBLIC, Role.USER, Role.ADMIN.",
        ),
        (
            "zoo",
            good,
            {"effect": "wirte"},
            "zoo: effect must be one of: Effect.READ, Effect.WRITE, Effect.DESTROY.",
        ),
        (
            "zoo",
            good,
            {"effect": Effect.WRITE, "writes": ["table"]},
            "zoo: writes must be one of: Target.DOCUMENTS, Target.TREE, Target.TABLES, "
            "Target.BLOBS, Target.OUTSIDE.",
        ),
        (
            "zoo",
            good,
            {"effect": Effect.WRITE, "writes": [Target.BLOBS]},
            "zoo: a row names its blob, so writes needs Target.TABLES too.",
        ),
        ("zoo", bare, {}, "zoo: annotate args with a class that is an Input."),
        ("zoo", of_dict, {}, "zoo: annotate args with a class that is an Input."),
        ("zoo", to_dict, {}, "zoo: annotate its result with a class that is an Output."),
    ],
    ids=[
        "name",
        "not async",
        "no docstring",
        "no time",
        "role",
        "effect",
        "writes",
        "blobs alone",
        "bare",
        "of dict",
        "to dict",
    ],
)
def test_a_mistake_is_told_when_the_tool_is_declared(
    name: str, handler: Callable[..., Any], more: dict[str, Any], told: str
) -> None:
    family = Family("tests", PACKS["backend"])
    given: dict[str, Any] = {"role": Role.ADMIN, "effect": Effect.READ, "title": "Zoo", **more}
    with pytest.raises(BadDeclaration) as refused:
        family.tool(name, **given)(handler)
    assert str(refused.value) == told
    assert family.tools == []


def test_plain_texts_are_taken_for_what_they_name() -> None:
    family = Family("tests", PACKS["backend"])
    given: dict[str, Any] = {"role": "user", "effect": "write", "writes": ["tables"]}
    tool = family.tool("zoo", title="Zoo", **given)(good)
    assert (tool.role, tool.effect, tool.writes) == (Role.USER, Effect.WRITE, {Target.TABLES})
    assert isinstance(tool.role, Role)
    assert isinstance(tool.effect, Effect)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("result", "told"),
    [({"a": 1}, "zoo returned dict; it declares Said"), (None, "zoo returned NoneType; it")],
    ids=["dict", "None"],
)
@pytest.mark.parametrize("effect", [Effect.READ, Effect.WRITE])
async def test_a_handler_that_returns_something_else_is_named_in_the_log(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    effect: Effect,
    result: Any,
    told: str,
) -> None:
    async def wrong(ctx: Any, args: Any) -> Any:
        return result

    async with opened_kit(tmp_path, plugins=offer(a_tool("zoo", wrong, effect=effect))) as kit:
        assert (await kit.call("zoo")).status == 500
    assert any(told in line for line in caplog.messages)


@pytest.mark.anyio
async def test_a_handler_may_refuse_arguments_with_a_sentence(tmp_path: Path) -> None:
    async def refuses(ctx: Any, args: Any) -> Any:
        raise InvalidArguments("from must be before to")

    async with opened_kit(tmp_path, plugins=offer(a_tool("zoo", refuses))) as kit:
        outcome = await kit.call("zoo")
    assert outcome.status == 400
    assert "from must be before to" in outcome.text

"""The suite's fixtures as a plug-in of toolgate: they pass through the gate like any tool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict

from toolgate.gate.catalogue import AnyTool
from toolgate.gate.context import Context
from toolgate.gate.dialects import SENTENCE
from toolgate.gate.offer import AnyOffer, Offer
from toolgate.gate.principal import Role
from toolgate.gate.prompts import Prompt, PromptArgument
from toolgate.gate.resources import Resource
from toolgate.gate.tool import Effect, Input, Output, Pack, Tool, ToolLimits

from . import fixtures, native

PACK = Pack("conformance", SENTENCE, "Fixtures of the conformance suite.")
READER = "conformance_read_resource"


def offer() -> AnyOffer:
    """Tools, resources and prompts as the suite expects them, in this process."""
    native.widen()
    return Offer(
        pack=PACK,
        tools=(*(_tool(one) for one in fixtures.tools(_unused)), _reporter(), _reader()),
        resources=(
            *(_resource(one.uri, one) for one in fixtures.RESOURCES),
            *(_resource(one.uri_template, one) for one in fixtures.RESOURCE_TEMPLATES),
        ),
        prompts=tuple(_prompt(one) for one in fixtures.PROMPTS),
    )


async def _unused(event: Any) -> None:
    raise AssertionError("the server that a tool runs in publishes")


def _tool(fixture: fixtures.FixtureTool) -> AnyTool:
    async def handler(ctx: Context, args: Input) -> Output:
        live = native.LIVE.get()
        # The trigger tools publish: give them the bus of the server they run in.
        mine = {one.name: one for one in fixtures.tools(live.publish)}
        try:
            live.answer = await mine[fixture.name].handler(live.raw, live.params)
        except MCPError as fault:
            live.fault = fault
        return Output()

    return _declared(fixture.name, fixture.description, _input(fixture.input_schema), handler)


def _reporter() -> AnyTool:
    """Reports progress as any tool does."""

    async def handler(ctx: Context, args: Input) -> Output:
        for done in (0, 50, 100):
            await ctx.progress(done, 100, f"Completed step {done} of 100")
            await anyio.sleep(fixtures.STEP)
        native.LIVE.get().answer = fixtures.text("Tool with progress executed successfully")
        return Output()

    told = "Reports progress three times."
    return _declared("test_tool_with_progress", told, _input(fixtures.NO_ARGUMENTS), handler)


def _reader() -> AnyTool:
    async def handler(ctx: Context, args: Input) -> Output:
        live = native.LIVE.get()
        try:
            live.answer = fixtures.read_resource(live.params.uri)
        except MCPError as fault:
            live.fault = fault
        return Output()

    return _declared(READER, "Reads a fixture resource.", _input({"type": "object"}), handler)


class _Fixture(Tool[Any, Any, Any]):
    """Promises nothing of its answer."""

    @property
    def output_schema(self) -> dict[str, Any]:
        return {}


def _declared(name: str, description: str, model: type[Input], handler: Any) -> AnyTool:
    return _Fixture(
        name=name,
        pack=PACK,
        family="fixtures",
        title=name,
        description=description,
        input=model,
        output=Output,
        role=Role.ADMIN,
        effect=Effect.READ,
        idempotent=True,
        open_world=False,
        limits=ToolLimits(slow=True),
        example={},
        handler=handler,
    )


def _input(schema: dict[str, Any]) -> type[Input]:
    class Raw(Input):
        model_config = ConfigDict(extra="allow")

        @classmethod
        def model_json_schema(cls, *given: Any, **named: Any) -> dict[str, Any]:
            return schema

    return Raw


def _resource(uri: str, one: types.Resource | types.ResourceTemplate) -> Resource:
    return Resource(
        uri=uri,
        name=one.name,
        title=one.title or one.name,
        description=one.description or one.name,
        tool=READER,
        arguments={},
        mime_type=one.mime_type or "text/plain",
    )


def _prompt(one: types.Prompt) -> Prompt:
    return Prompt(
        name=one.name,
        title=one.title or one.name,
        description=one.description or one.name,
        arguments=tuple(
            PromptArgument(arg.name, arg.description or "", bool(arg.required), ("paris", "park"))
            for arg in one.arguments or ()
        ),
        render=_rendered,
    )


def _rendered(given: Mapping[str, str]) -> str:
    live = native.LIVE.get()
    try:
        live.answer = fixtures.get_prompt(live.params)
    except MCPError as fault:
        live.fault = fault
    return ""

"""The suite's fixtures as a plug-in of toolgate: they pass through the gate like any tool."""

from __future__ import annotations

from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ConfigDict

from toolgate.gate.answers import Native
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.context import Context
from toolgate.gate.dialects import SENTENCE
from toolgate.gate.offer import AnyOffer, Offer
from toolgate.gate.principal import Role
from toolgate.gate.prompts import Prompt, PromptArgument
from toolgate.gate.resources import Resource
from toolgate.gate.tool import Effect, Input, Pack, Tool, ToolLimits

from . import fixtures

PACK = Pack("conformance", SENTENCE, "Fixtures of the conformance suite.")
READER = "conformance_read_resource"


def offer() -> AnyOffer:
    """Tools, resources and prompts as the suite expects them."""
    return Offer(
        pack=PACK,
        tools=(*(_tool(one) for one in fixtures.tools(_unused)), _reader()),
        resources=(
            *(_resource(one.uri, one) for one in fixtures.RESOURCES),
            *(_resource(one.uri_template, one) for one in fixtures.RESOURCE_TEMPLATES),
        ),
        prompts=tuple(_prompt(one) for one in fixtures.PROMPTS),
    )


async def _unused(event: Any) -> None:
    raise AssertionError("the gate's own exchange publishes")


def _tool(fixture: fixtures.FixtureTool) -> AnyTool:
    async def handler(ctx: Context, args: Input) -> Native:
        assert ctx.exchange is not None
        # The trigger tools publish: give them the bus of the server they run in.
        live = {one.name: one for one in fixtures.tools(ctx.exchange.publish)}
        try:
            result = await live[fixture.name].handler(ctx.exchange.raw, ctx.exchange.params)
        except MCPError as fault:
            return Native(result=fault)
        return Native(result=result)

    return _declared(fixture.name, fixture.description, _input(fixture.input_schema), handler)


def _reader() -> AnyTool:
    async def handler(ctx: Context, args: Input) -> Native:
        assert ctx.exchange is not None
        try:
            return Native(result=fixtures.read_resource(ctx.exchange.params.uri))
        except MCPError as fault:
            return Native(result=fault)

    return _declared(READER, "Reads a fixture resource.", _input({"type": "object"}), handler)


def _declared(name: str, description: str, model: type[Input], handler: Any) -> AnyTool:
    return Tool(
        name=name,
        pack=PACK,
        family="fixtures",
        title=name,
        description=description,
        input=model,
        output=Native,
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
        render=lambda given: "",
        native=fixtures.get_prompt,
    )

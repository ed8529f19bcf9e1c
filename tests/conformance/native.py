"""Answers in the SDK's own types, for the suite's fixtures alone.

Tools of toolgate answer with JSON. The suite also wants images, sounds, log entries, questions and
input-required results, which are the SDK's matter and not the gate's. Here the SDK's handlers are
widened by that: a fixture is called through the gate like any tool, and leaves its answer here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from mcp.shared.exceptions import MCPError

from toolgate.transports.mcp import server
from toolgate.transports.mcp.sdk_prompts import PromptHandlers
from toolgate.transports.mcp.sdk_resources import ResourceHandlers
from toolgate.transports.mcp.sdk_tools import ToolHandlers


@dataclass(slots=True)
class Live:
    """A request to the SDK while it runs, and what a fixture answers to it."""

    raw: Any
    params: Any
    publish: Callable[[Any], Awaitable[None]]
    answer: Any = None
    fault: MCPError | None = None


LIVE: ContextVar[Live] = ContextVar("live")


async def answered(handlers: Any, raw: Any, params: Any, handler: Callable[..., Any]) -> Any:
    """What the fixture behind a handler answers; else what the handler does."""
    live = Live(raw, params, handlers._requests.bus.publish)
    token = LIVE.set(live)
    try:
        usual = await handler(raw, params)
    finally:
        LIVE.reset(token)
    if live.fault is not None:
        raise live.fault
    return usual if live.answer is None else live.answer


class Tools(ToolHandlers):
    async def call_tool(self, raw: Any, params: Any) -> Any:
        return await answered(self, raw, params, super().call_tool)


class Resources(ResourceHandlers):
    async def read_resource(self, raw: Any, params: Any) -> Any:
        return await answered(self, raw, params, super().read_resource)


class Prompts(PromptHandlers):
    async def get_prompt(self, raw: Any, params: Any) -> Any:
        return await answered(self, raw, params, super().get_prompt)


def widen() -> None:
    """For every server that this process makes from now on."""
    vars(server).update(ToolHandlers=Tools, ResourceHandlers=Resources, PromptHandlers=Prompts)

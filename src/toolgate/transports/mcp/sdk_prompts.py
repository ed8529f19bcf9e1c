"""Prompts, as the SDK's server asks for them."""

from collections.abc import Iterable
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from toolgate.gate.audited_names import audited_name
from toolgate.gate.errors import printable
from toolgate.gate.prompts import Prompt
from toolgate.transports.mcp.listing import visible_prompts
from toolgate.transports.mcp.sdk_requests import Requests, SdkContext


class PromptHandlers:
    """The prompts, and values for their arguments."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def list_prompts(
        self, raw: SdkContext, params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """The prompts, for every caller with credentials."""
        prompts = self._visible(raw)
        return types.ListPromptsResult(
            prompts=[
                types.Prompt(
                    name=one.name,
                    title=one.title,
                    description=one.description,
                    arguments=[
                        types.PromptArgument(
                            name=arg.name, description=arg.description, required=arg.required
                        )
                        for arg in one.arguments
                    ],
                )
                for one in prompts
            ]
        )

    async def get_prompt(
        self, raw: SdkContext, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult | types.InputRequiredResult:
        """One prompt with its arguments filled in."""
        prompts = {one.name: one for one in self._visible(raw)}
        prompt = prompts.get(params.name)
        if prompt is None:
            error = MCPError(types.INVALID_PARAMS, f"Unknown prompt: {printable(params.name)}")
            raise self._requests.not_found(raw, audited_name(params.name), error)
        given = params.arguments or {}
        if missing := [
            arg.name for arg in prompt.arguments if arg.required and not given.get(arg.name)
        ]:
            raise MCPError(types.INVALID_PARAMS, f"{', '.join(missing)} is required")
        text = types.TextContent(text=prompt.render(given))
        return types.GetPromptResult(
            description=prompt.description,
            messages=[types.PromptMessage(role="user", content=text)],
        )

    async def complete(
        self, raw: SdkContext, params: types.CompleteRequestParams
    ) -> types.CompleteResult:
        """Values for a prompt's argument that begin with what was typed."""
        prompts = {one.name: one for one in self._visible(raw)}
        prompt = prompts.get(getattr(params.ref, "name", ""))
        arguments: Iterable[Any] = prompt.arguments if prompt else ()
        known = {arg.name: arg.values for arg in arguments}.get(params.argument.name, ())
        fitting = [one for one in known if one.lower().startswith(params.argument.value.lower())]
        return types.CompleteResult(
            completion=types.Completion(values=fitting[:100], total=len(fitting), has_more=False)
        )

    def _visible(self, raw: SdkContext) -> list[Prompt]:
        return visible_prompts(self._requests.gate, self._requests.principal(raw))

"""Resources, as the SDK's server asks for them."""

from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from toolgate.gate.errors import printable
from toolgate.gate.resources import Resource
from toolgate.transports.mcp.listing import visible_resources
from toolgate.transports.mcp.sdk_requests import Raw, Requests


class ResourceHandlers:
    """Lists of addresses, reading what is there, and interest in it."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def list_resources(
        self, raw: Raw, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """The addresses whose tools this caller may see."""
        listed = [
            types.Resource(uri=one.uri, **_description(one))
            for one in self._visible(raw)
            if not one.template
        ]
        return types.ListResourcesResult(resources=listed)

    async def list_templates(
        self, raw: Raw, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """The address patterns whose tools this caller may see."""
        listed = [
            types.ResourceTemplate(uri_template=one.uri, **_description(one))
            for one in self._visible(raw)
            if one.template
        ]
        return types.ListResourceTemplatesResult(resource_templates=listed)

    async def read_resource(
        self, raw: Raw, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """What the tool behind an address answers."""
        for one in self._visible(raw):
            if (arguments := one.arguments_for(params.uri)) is not None:
                outcome = await self._requests.execute(raw, one.tool, arguments)
                break
        else:
            raise self._requests.unknown(raw, params.uri, _no_resource(params.uri))
        if outcome.error:
            raise MCPError(types.INVALID_PARAMS, outcome.error.message, {"uri": params.uri})
        content = types.TextResourceContents(
            uri=params.uri, mime_type=one.mime_type, text=outcome.text
        )
        return types.ReadResourceResult(contents=[content])

    async def subscribe(
        self, raw: Raw, params: types.SubscribeRequestParams | types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Accept interest in an address the caller may read; what never changes is never sent."""
        if not self._may_read(raw, params.uri):
            raise self._requests.unknown(raw, params.uri, _no_resource(params.uri))
        return types.EmptyResult()

    def allowed_subscriptions(
        self, raw: Raw, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenRequestParams:
        """The request without addresses the caller may not read."""
        wanted = params.notifications
        allowed = [uri for uri in wanted.resource_subscriptions or () if self._may_read(raw, uri)]
        narrowed = wanted.model_copy(update={"resource_subscriptions": allowed})
        return params.model_copy(update={"notifications": narrowed})

    def _visible(self, raw: Raw) -> list[Resource]:
        return visible_resources(self._requests.gate, self._requests.principal(raw))

    def _may_read(self, raw: Raw, uri: str) -> bool:
        return any(one.arguments_for(uri) is not None for one in self._visible(raw))


def _description(resource: Resource) -> dict[str, Any]:
    """What `resources/list` and `resources/templates/list` say alike."""
    return {
        "name": resource.name,
        "title": resource.title,
        "description": resource.description,
        "mime_type": resource.mime_type,
    }


def _no_resource(uri: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, f"Resource not found: {printable(uri)}", {"uri": uri})

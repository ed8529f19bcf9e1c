"""Resources, as the SDK's server asks for them."""

from base64 import b64encode
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError

from toolgate.gate.attachments import linked_call
from toolgate.gate.audited_names import audited_uri
from toolgate.gate.errors import RateLimited, UnknownTool, printable
from toolgate.gate.resources import Resource
from toolgate.transports.attachments import hold
from toolgate.transports.mcp.listing import visible_resources
from toolgate.transports.mcp.sdk_requests import Requests, SdkContext

Behind = tuple[str, dict[str, Any], str]
"""Tool, arguments, and the media type of its answer."""


class ResourceHandlers:
    """Lists of addresses, reading what is there, and interest in it."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    async def list_resources(
        self, raw: SdkContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """The addresses whose tools this caller may see."""
        listed = [
            types.Resource(uri=one.uri, **_description(one))
            for one in self._visible(raw)
            if not one.template
        ]
        return types.ListResourcesResult(resources=listed)

    async def list_templates(
        self, raw: SdkContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """The address patterns whose tools this caller may see."""
        listed = [
            types.ResourceTemplate(uri_template=one.uri, **_description(one))
            for one in self._visible(raw)
            if one.template
        ]
        return types.ListResourceTemplatesResult(resource_templates=listed)

    async def read_resource(
        self, raw: SdkContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult | types.InputRequiredResult:
        """What the tool behind an address answers."""
        found = self._declared(raw, params.uri) or self._attachment(params.uri)
        if found is None:
            raise self._not_found(raw, params.uri)
        tool, arguments, mime_type = found
        call = self._requests.call_of(raw, tool, arguments)
        outcome = await self._requests.gate.execute(call)
        if isinstance(outcome.error, UnknownTool):
            raise _no_resource(params.uri)
        if outcome.error:
            limited = isinstance(outcome.error, RateLimited)
            code = outcome.error.rpc if limited else types.INVALID_PARAMS
            raise MCPError(code, outcome.error.message, {"uri": params.uri})
        if (attached := outcome.attached) is not None:
            if raw.request is not None:
                hold(raw.request.scope, attached)
            blob = b64encode(attached.data).decode()
            kind = attached.attachment.content_type
            content = types.BlobResourceContents(uri=params.uri, mime_type=kind, blob=blob)
        else:
            content = types.TextResourceContents(
                uri=params.uri, mime_type=mime_type, text=outcome.text
            )
        return types.ReadResourceResult(contents=[content])

    def _declared(self, raw: SdkContext, uri: str) -> Behind | None:
        """The call behind the address of a resource that some pack declares."""
        for one in self._visible(raw):
            if (arguments := one.arguments_for(uri)) is not None:
                return one.tool, arguments, one.mime_type
        return None

    def _attachment(self, uri: str) -> Behind | None:
        """The call behind the URI of an attachment; the gate decides on it, and audits it."""
        call = linked_call(uri)
        if call is None:
            return None
        tool = self._requests.gate.catalogue.find(call[0])
        has_none = tool is not None and tool.attachment_field is None
        return None if has_none else (*call, "application/json")

    def _not_found(self, raw: SdkContext, uri: str) -> MCPError:
        return self._requests.not_found(raw, audited_uri(uri), _no_resource(uri))

    async def subscribe(
        self, raw: SdkContext, params: types.SubscribeRequestParams | types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Accept interest in an address the caller may read; what never changes is never sent."""
        if not self._may_read(raw, params.uri):
            raise self._not_found(raw, params.uri)
        return types.EmptyResult()

    def allowed_subscriptions(
        self, raw: SdkContext, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenRequestParams:
        """The request without addresses the caller may not read."""
        wanted = params.notifications
        allowed = [uri for uri in wanted.resource_subscriptions or () if self._may_read(raw, uri)]
        narrowed = wanted.model_copy(update={"resource_subscriptions": allowed})
        return params.model_copy(update={"notifications": narrowed})

    def _visible(self, raw: SdkContext) -> list[Resource]:
        return visible_resources(self._requests.gate, self._requests.principal(raw))

    def _may_read(self, raw: SdkContext, uri: str) -> bool:
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

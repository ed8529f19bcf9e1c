"""Which authorization server guards a resource (RFC 9728)."""

from toolgate.identity.oauth.messages import Request, Response, json_response
from toolgate.identity.oauth.paths import MCP_PATHS
from toolgate.identity.oauth.scopes import SUPPORTED


class ResourceMetadata:
    """The metadata of one of our resources, named by its path."""

    methods = ("GET", "HEAD")

    def __init__(self, path: str = MCP_PATHS[-1]) -> None:
        self._path = path

    async def __call__(self, request: Request) -> Response:
        """Tell it."""
        return json_response(
            {
                "resource": request.base + self._path,
                "authorization_servers": [request.base],
                "scopes_supported": SUPPORTED,
                "bearer_methods_supported": ["header"],
                "resource_name": "toolgate",
            }
        )

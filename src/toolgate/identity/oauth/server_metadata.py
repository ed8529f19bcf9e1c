"""What this authorization server can do, and where (RFC 8414)."""

from toolgate.identity.oauth import paths
from toolgate.identity.oauth.messages import Request, Response, json_response
from toolgate.identity.oauth.scopes import SUPPORTED


class ServerMetadata:
    """Our endpoints and what they accept."""

    methods = ("GET", "HEAD")

    def __init__(self, *, registration: bool, client_documents: bool) -> None:
        self._registration = registration
        self._client_documents = client_documents

    async def __call__(self, request: Request) -> Response:
        """Tell it."""
        base = request.base
        register = {"registration_endpoint": base + paths.REGISTER} if self._registration else {}
        return json_response(
            {
                "issuer": base,
                "authorization_endpoint": base + paths.AUTHORIZE,
                "token_endpoint": base + paths.TOKEN,
                **register,
                "revocation_endpoint": base + paths.REVOKE,
                "scopes_supported": SUPPORTED,
                "response_types_supported": ["code"],
                "response_modes_supported": ["query"],
                "grant_types_supported": ["authorization_code", "refresh_token"],
                "token_endpoint_auth_methods_supported": ["none"],
                "revocation_endpoint_auth_methods_supported": ["none"],
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": True,
                "client_id_metadata_document_supported": self._client_documents,
            }
        )

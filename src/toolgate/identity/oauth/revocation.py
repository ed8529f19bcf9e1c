"""A client gives a token back (RFC 7009): a refresh token ends the whole grant."""

from toolgate.identity.oauth.admin_client import AdminClients
from toolgate.identity.oauth.grants import Grants
from toolgate.identity.oauth.messages import Request, Response, error_response, json_response
from toolgate.identity.oauth.token import BAD, FORM


class RevocationEndpoint:
    """Ends tokens; one that is not known is as good as ended."""

    methods = ("POST",)

    def __init__(self, grants: Grants, admins: AdminClients) -> None:
        self._grants = grants
        self._admins = admins

    async def __call__(self, request: Request) -> Response:
        """End the token."""
        token = request.form.get("token")
        if request.content_type != FORM or request.form.repeated or token is None:
            return error_response("invalid_request", f"Send token, once, in a body of {FORM}.", BAD)
        client_id = await self._admins.stored_client_id(request, request.form.get("client_id"))
        refusal = await self._grants.revoke(token, client_id, request.note)
        if refusal:
            return error_response(
                refusal.error, refusal.description, refusal.rule, actor=refusal.actor
            )
        return json_response({})

"""A client gives a token back (RFC 7009): a refresh token ends the whole grant."""

from toolgate.identity.oauth.admin_client import AdminClients
from toolgate.identity.oauth.grants import Grants
from toolgate.identity.oauth.messages import Answer, Request, failure, json_answer
from toolgate.identity.oauth.token import BAD, FORM


class Revoke:
    """Ends tokens; one that is not known is as good as ended."""

    methods = ("POST",)

    def __init__(self, grants: Grants, admins: AdminClients) -> None:
        self._grants = grants
        self._admins = admins

    async def __call__(self, request: Request) -> Answer:
        """End the token."""
        token = request.form.get("token")
        if request.content_type != FORM or request.form.repeated or token is None:
            return failure("invalid_request", f"Send token, once, in a body of {FORM}.", BAD)
        client_id = await self._admins.known_as(request, request.form.get("client_id"))
        refused = await self._grants.revoke(token, client_id, request.note)
        if refused:
            return failure(refused.error, refused.description, refused.rule, acting=refused.acting)
        return json_answer({})

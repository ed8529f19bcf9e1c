"""Tokens for a code or a refresh token (RFC 6749 sections 4.1.3 and 6, RFC 7636, RFC 8707)."""

from toolgate.identity.guesses import Guesses
from toolgate.identity.oauth.admin_client import AdminClients
from toolgate.identity.oauth.audit_notes import Note
from toolgate.identity.oauth.clients import BadClient, Clients, is_document
from toolgate.identity.oauth.grants import Grants, Tokens
from toolgate.identity.oauth.messages import (
    Parameters,
    Request,
    Response,
    error_response,
    json_response,
)
from toolgate.identity.oauth.refusals import CodeRequest, RefreshRequest, Refusal

FORM = "application/x-www-form-urlencoded"
BAD = "oauth-bad-request"


class TokenEndpoint:
    """Exchanges codes and refresh tokens."""

    methods = ("POST",)

    def __init__(
        self, grants: Grants, clients: Clients, admins: AdminClients, guesses: Guesses
    ) -> None:
        self._grants = grants
        self._clients = clients
        self._admins = admins
        self._guesses = guesses

    async def __call__(self, request: Request) -> Response:
        """Answer with a pair of tokens, or with why not."""
        form = request.form
        if request.content_type != FORM:
            return error_response("invalid_request", f"The body must be {FORM}.", BAD)
        if form.repeated:
            message = f"{min(form.repeated)[:40]} is given more than once."
            return error_response("invalid_request", message, BAD)
        admin = await self._admins.holder(request, form.get("client_id"))
        if admin is not None:
            form = form.with_value("client_id", admin.id)
        elif unknown := await self._unknown_client(form.get("client_id")):
            return _response(unknown)
        outcome = await self._grant_tokens(form, request.note)
        if isinstance(outcome, Tokens):
            self._guesses.note_issued(outcome.access, request.peer)
        return _response(outcome)

    async def _grant_tokens(self, form: Parameters, note: Note) -> Tokens | Refusal:
        match form.get("grant_type"):
            case "authorization_code":
                return await self._exchange(form, note)
            case "refresh_token":
                return await self._refresh(form, note)
            case None:
                return Refusal("invalid_request", "grant_type is required.", BAD)
            case _:
                message = "grant_type must be authorization_code or refresh_token."
                return Refusal("unsupported_grant_type", message, BAD)

    async def _unknown_client(self, client_id: str | None) -> Refusal | None:
        """A refusal for a client whose registration is gone: it is to register again.

        A document is not asked for here: a grant already names its client.
        """
        if client_id is None or is_document(client_id):
            return None
        try:
            await self._clients.find(client_id)
        except BadClient as bad:
            return Refusal("invalid_client", str(bad), "oauth-unknown-client")
        return None

    async def _exchange(self, form: Parameters, note: Note) -> Tokens | Refusal:
        code, client_id = form.get("code"), form.get("client_id")
        verifier = form.get("code_verifier")
        if not code or not client_id:
            return Refusal("invalid_request", "code and client_id are required.", BAD)
        if not verifier:
            message = "code_verifier is required (PKCE)."
            return Refusal("invalid_request", message, "oauth-missing-verifier")
        return await self._grants.exchange(
            CodeRequest(
                code=code,
                client_id=client_id,
                verifier=verifier,
                redirect_uri=form.get("redirect_uri"),
                resource=form.get("resource"),
            ),
            note,
        )

    async def _refresh(self, form: Parameters, note: Note) -> Tokens | Refusal:
        token, client_id = form.get("refresh_token"), form.get("client_id")
        if not token or not client_id:
            return Refusal("invalid_request", "refresh_token and client_id are required.", BAD)
        return await self._grants.refresh(
            RefreshRequest(
                token=token,
                client_id=client_id,
                resource=form.get("resource"),
                scope=form.get("scope"),
            ),
            note,
        )


def _response(outcome: Tokens | Refusal) -> Response:
    if isinstance(outcome, Refusal):
        return error_response(outcome.error, outcome.description, outcome.rule, actor=outcome.actor)
    return json_response(
        {
            "access_token": outcome.access,
            "token_type": "Bearer",
            "expires_in": outcome.seconds,
            "refresh_token": outcome.refresh,
            "scope": outcome.scope,
        },
        200,
        ("pragma", "no-cache"),
    )

"""A client sends a browser to ask for a grant (OAuth 2.1 section 4.1, RFC 7636, 8707, 9207).

Until client and redirect address are trusted, what is wrong is said on a page of ours; from then
on it is said to the client.
"""

from toolgate.gate.principal import Principal
from toolgate.identity.keys import Keys
from toolgate.identity.oauth import browser, paths, pkce, redirects, scopes
from toolgate.identity.oauth.admin_client import AdminClients
from toolgate.identity.oauth.clients import BadClient, Client, Clients, is_document
from toolgate.identity.oauth.grants import Grants
from toolgate.identity.oauth.messages import Request, Response, redirect, with_parameters
from toolgate.identity.oauth.page_templates import error_page
from toolgate.identity.oauth.sign_ins import AuthorizationRequest, SignIns
from toolgate.identity.oauth.subjects import subject_of
from toolgate.identity.providers import Provider, SignInFailed

MAX_STATE = 4096
NO_REDIRECT = "The application did not say where its answer goes (redirect_uri)."
BAD_REDIRECT = (
    "The application asks to be answered at an address that it did not register (redirect_uri)."
)
NOT_HERE = (
    "With an admin key as client ID, the answer goes to this machine only (redirect_uri on "
    "127.0.0.1, [::1] or localhost)."
)
REGISTER_AGAIN = "Let it register again, or tell its makers."
TELL_MAKERS = "Tell the makers of the application."
HOW_TO_SIGN_IN = (
    "Remove this server from the application and add it anew with the client ID left empty: the "
    "application then registers itself, and you sign in on a page of this server. An admin key is "
    "accepted as client ID only on the machine the server runs on, unless its operator allows more "
    "(setting oauth.admin_key_client)."
)
NO_DOCUMENT = (
    "Tell the makers of the application what is wrong with its document. Where this server cannot "
    "reach other hosts, its operator can set oauth.client_documents to false: applications then "
    "register themselves."
)


class InvalidAuthorizationRequest(ValueError):
    """A request that cannot be granted, for the client to know."""

    def __init__(self, error: str, message: str, rule: str) -> None:
        super().__init__(message)
        self.error = error
        self.rule = rule


class AuthorizationEndpoint:
    """Begins a sign-in."""

    methods = ("GET",)

    def __init__(
        self,
        clients: Clients,
        sign_ins: SignIns,
        provider: Provider | None,
        *,
        admins: AdminClients,
        keys: Keys,
        grants: Grants,
    ) -> None:
        self._clients = clients
        self._sign_ins = sign_ins
        self._provider = provider
        self._admins = admins
        self._keys = keys
        self._grants = grants

    async def __call__(self, request: Request) -> Response:
        """Send the browser to sign in, or say what is wrong."""
        query = request.query
        if query.repeated & {"client_id", "redirect_uri"}:
            message = "client_id and redirect_uri must be given once."
            return error_page(request, message, "oauth-bad-request")
        client_id, target = query.get("client_id") or "", query.get("redirect_uri") or ""
        admin = await self._admins.holder(request, client_id)
        try:
            client = (
                self._admin_client(admin, target) if admin else await self._clients.find(client_id)
            )
        except BadClient as bad:
            by_document = is_document(client_id) and self._clients.reads_documents
            then = NO_DOCUMENT if by_document else HOW_TO_SIGN_IN
            return error_page(request, str(bad), "oauth-unknown-client", then=then)
        if refusal := _bad_redirect(request, client, target):
            return refusal
        try:
            authorization = _read_request(request, client, target)
        except InvalidAuthorizationRequest as problem:
            error = {"error": problem.error, "error_description": str(problem)}
            state = None if "state" in query.repeated else query.get("state")
            parameters = {"state": state, "iss": request.base}
            return redirect(with_parameters(target, error | parameters), rule=problem.rule)
        if admin is not None:
            return await self._allow_at_once(request, authorization, admin)
        return await self._begin(request, authorization)

    def _admin_client(self, admin: Principal, target: str) -> Client:
        """The client of somebody who knows an admin key; it is answered on this machine."""
        if target and not self._admins.everywhere and not redirects.is_loopback(target):
            raise BadClient(NOT_HERE)
        return Client(id=admin.id, name="a client with an admin key", redirect_uris=(target,))

    async def _allow_at_once(
        self, request: Request, authorization: AuthorizationRequest, admin: Principal
    ) -> Response:
        """The key in the request is proof and consent in one; PKCE and the code are as always."""
        subject = subject_of(admin, self._keys)
        code = await self._grants.allow_at_once(authorization, subject, request.note)
        parameters = {"code": code, "state": authorization.state, "iss": request.base}
        return redirect(with_parameters(authorization.redirect_uri, parameters))

    async def _begin(self, request: Request, authorization: AuthorizationRequest) -> Response:
        sign_in = await self._sign_ins.begin(authorization, request.peer)
        cookie = browser.cookie(request, sign_in)
        if self._provider is None:
            here = with_parameters(request.base + paths.SIGN_IN, {"request": sign_in.id})
            return redirect(here, cookie)
        try:
            beginning = await self._provider.begin(sign_in.state, request.base + paths.CALLBACK)
        except SignInFailed as failed:
            return error_page(request, str(failed), "oauth-sign-in-failed", status=502)
        await self._sign_ins.remember(sign_in, beginning.remembered)
        return redirect(beginning.url, cookie)


def _bad_redirect(request: Request, client: Client, target: str) -> Response | None:
    """A page that says why the answer cannot be sent there; None where it can."""
    rule = "oauth-bad-redirect"
    if not target:
        return error_page(request, NO_REDIRECT, rule, then=TELL_MAKERS)
    if not redirects.is_allowed(target, client.redirect_uris):
        return error_page(request, BAD_REDIRECT, rule, then=REGISTER_AGAIN)
    if broken := redirects.broken_rule(target):
        message = f"The application cannot be answered where it asks: redirect_uri {broken}."
        return error_page(request, message, rule, then=TELL_MAKERS)
    return None


def _read_request(request: Request, client: Client, target: str) -> AuthorizationRequest:
    query = request.query
    if repeated := query.repeated - {"resource"}:
        message = f"{min(repeated)[:40]} is given more than once."
        raise InvalidAuthorizationRequest("invalid_request", message, "oauth-bad-request")
    if query.get("response_type") != "code":
        error = "unsupported_response_type" if query.get("response_type") else "invalid_request"
        raise InvalidAuthorizationRequest(error, "response_type must be code.", "oauth-bad-request")
    state = query.get("state")
    if len(state or "") > MAX_STATE:
        message = f"state must have at most {MAX_STATE} characters."
        raise InvalidAuthorizationRequest("invalid_request", message, "oauth-bad-request")
    return AuthorizationRequest(
        client_id=client.id,
        client_name=client.name,
        client_uri=client.uri,
        redirect_uri=target,
        state=state,
        challenge=_challenge(request),
        resource=_resource(request),
        scope=_scope(request),
    )


def _challenge(request: Request) -> str:
    challenge = request.query.get("code_challenge")
    if challenge is None:
        message = "code_challenge is required (PKCE with S256)."
        raise InvalidAuthorizationRequest("invalid_request", message, "oauth-missing-pkce")
    if request.query.get("code_challenge_method") != "S256":
        message = "code_challenge_method must be S256."
        raise InvalidAuthorizationRequest("invalid_request", message, "oauth-plain-pkce")
    if not pkce.CHALLENGE.fullmatch(challenge):
        message = "code_challenge must be 43 characters of base64url."
        raise InvalidAuthorizationRequest("invalid_request", message, "oauth-bad-pkce")
    return challenge


def _scope(request: Request) -> str:
    scope = scopes.requested_scope(request.query.get("scope"))
    if not scope:
        message = f"scope must name {' or '.join(scopes.SUPPORTED)}, or be left out."
        raise InvalidAuthorizationRequest("invalid_scope", message, "oauth-bad-scope")
    return scope


def _resource(request: Request) -> str:
    resource = request.query.get("resource")
    if resource is None:
        return request.base + paths.MCP_PATHS[-1]
    if "resource" in request.query.repeated or resource not in request.resources:
        message = f"resource must be one of {', '.join(sorted(request.resources))}."
        raise InvalidAuthorizationRequest("invalid_target", message, "oauth-bad-resource")
    return resource

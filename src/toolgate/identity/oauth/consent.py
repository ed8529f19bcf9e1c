"""The person decides: who asks, where the answer goes, what is allowed (OAuth 2.1 section 7)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from toolgate.db.engine import Database
from toolgate.gate.principal import Principal, Role
from toolgate.identity.credentials import Credentials
from toolgate.identity.oauth import browser, paths, redirects, scopes
from toolgate.identity.oauth.audit_notes import principal_of
from toolgate.identity.oauth.clients import is_document
from toolgate.identity.oauth.grants import Grants
from toolgate.identity.oauth.messages import Header, Request, Response, redirect, with_parameters
from toolgate.identity.oauth.page_templates import error_page, page
from toolgate.identity.oauth.refusals import KEY_ENDED, Refusal
from toolgate.identity.oauth.sign_ins import SignIn, SignIns, Subject

READ_ONLY = "read"
UNITS = (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1))

ToolCounts = Mapping[str, int]
"""How many tools somebody may call, by their effect."""


@dataclass(frozen=True, slots=True)
class Lifetimes:
    """How long what is allowed lasts, in seconds."""

    access: float
    refresh: float


class ConsentPage:
    """Asks, and makes the grant."""

    methods = ("GET", "POST")

    def __init__(
        self,
        database: Database,
        sign_ins: SignIns,
        grants: Grants,
        credentials: Credentials,
        *,
        count_tools: Callable[[Principal], ToolCounts],
        lifetimes: Lifetimes,
    ) -> None:
        self._database = database
        self._sign_ins = sign_ins
        self._grants = grants
        self._credentials = credentials
        self._count_tools = count_tools
        self._lifetimes = lifetimes

    async def __call__(self, request: Request) -> Response:
        """Show the page, or read what it sends."""
        posted = request.method == "POST"
        parameters = request.form if posted else request.query
        sign_in = await browser.find_sign_in(request, self._sign_ins, parameters.get("request"))
        if isinstance(sign_in, Response):
            return sign_in
        if sign_in.subject is None:
            return error_page(request, "Sign in first.", "oauth-not-signed-in", status=403)
        token = parameters.get("form_token") or ""
        if not sign_in.may_decide(token):
            return error_page(request, browser.FORGED, "oauth-forged-form", status=403)
        if posted:
            return await self._read_decision(request, sign_in)
        return await self._page(request, sign_in, sign_in.subject, token)

    async def _read_decision(self, request: Request, sign_in: SignIn) -> Response:
        match request.form.get("decision"):
            case "allow":
                return await self._allow(request, sign_in)
            case "deny":
                return await self._deny(request, sign_in)
            case _:
                return error_page(request, "Answer with Allow or Deny.", "oauth-bad-request")

    async def _allow(self, request: Request, sign_in: SignIn) -> Response:
        reading_only = request.form.get("access") == READ_ONLY
        code = await self._grants.allow(sign_in, request.note, reading_only=reading_only)
        if isinstance(code, Refusal):
            return error_page(request, code.description, code.rule, status=403)
        return _redirect_to_client(request, sign_in, {"code": code})

    async def _deny(self, request: Request, sign_in: SignIn) -> Response:
        await self._grants.deny(sign_in, request.note)
        parameters = {"error": "access_denied", "error_description": "The person said no."}
        gone = browser.cookie(request, sign_in, ended=True)
        return _redirect_to_client(
            request, sign_in, parameters, gone, rule="oauth-denied-by-person"
        )

    async def _page(
        self, request: Request, sign_in: SignIn, subject: Subject, token: str
    ) -> Response:
        if not await self._grants.is_key_in_force(subject):
            return error_page(request, KEY_ENDED, "oauth-key-ended", status=403)
        authorization = sign_in.asked
        client_id = authorization.client_id
        principal = await self._principal(subject)
        reads_only = scopes.is_read_only(authorization.scope)
        counts = self._count_tools(replace(principal, read_only=reads_only))
        return page(
            request,
            "consent",
            leads_to=redirects.origin(authorization.redirect_uri),
            action=paths.CONSENT,
            sign_in=sign_in.id,
            form_token=token,
            client=authorization.client_name,
            described_by=urlsplit(client_id).netloc if is_document(client_id) else None,
            place=redirects.describe(authorization.redirect_uri),
            person=subject.shown,
            admin=Role.ADMIN in principal.roles,
            reads_only=reads_only,
            counts={effect: counts.get(effect, 0) for effect in ("read", "write", "destroy")},
            renewed=duration_in_words(self._lifetimes.access),
            unused=duration_in_words(self._lifetimes.refresh),
        )

    async def _principal(self, subject: Subject) -> Principal:
        """Who signed in, with the roles they have now."""
        principal = await self._database.read(
            lambda connection: principal_of(connection, subject.user_id, subject.key_id), quick=True
        )
        return await self._credentials.with_admin_role(principal)


def duration_in_words(seconds: float) -> str:
    """A length of time, in the largest unit that fits it evenly."""
    total = max(1, round(seconds))
    for name, size in UNITS:
        number, rest = divmod(total, size)
        if not rest:
            return f"{number} {name}{'' if number == 1 else 's'}"
    raise AssertionError("a second always fits")


def _redirect_to_client(
    request: Request,
    sign_in: SignIn,
    parameters: dict[str, str],
    *headers: Header,
    rule: str | None = None,
) -> Response:
    """To the client, with our name (RFC 9207).

    After Allow the browser keeps its cookie, so that who goes back can still choose Deny.
    """
    query = {**parameters, "state": sign_in.asked.state, "iss": request.base}
    return redirect(with_parameters(sign_in.asked.redirect_uri, query), *headers, rule=rule)

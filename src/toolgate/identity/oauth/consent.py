"""The person decides: who asks, where the answer goes, what is allowed (OAuth 2.1 section 7)."""

from urllib.parse import urlsplit

from toolgate.identity.oauth import browser, paths, redirects
from toolgate.identity.oauth.clients import is_document
from toolgate.identity.oauth.grants import Grants
from toolgate.identity.oauth.messages import Answer, Request, redirect, with_parameters
from toolgate.identity.oauth.rendering import error_page, page
from toolgate.identity.oauth.sign_ins import SignIn, SignIns


class Consent:
    """Asks, and makes the grant."""

    methods = ("GET", "POST")

    def __init__(self, sign_ins: SignIns, grants: Grants) -> None:
        self._sign_ins = sign_ins
        self._grants = grants

    async def __call__(self, request: Request) -> Answer:
        """Show the page, or read what it sends."""
        posted = request.method == "POST"
        given = request.form if posted else request.query
        sign_in = await browser.found(request, self._sign_ins, given.get("request"))
        if isinstance(sign_in, Answer):
            return sign_in
        if sign_in.subject is None:
            return error_page("Sign in first.", "oauth-not-signed-in", status=403)
        if not posted:
            return _shown(sign_in)
        return browser.forged(request, sign_in) or await self._decided(request, sign_in)

    async def _decided(self, request: Request, sign_in: SignIn) -> Answer:
        match request.form.get("decision"):
            case "allow":
                return await self._allow(request, sign_in)
            case "deny":
                return await self._deny(request, sign_in)
            case _:
                return error_page("Answer with Allow or Deny.", "oauth-bad-request")

    async def _allow(self, request: Request, sign_in: SignIn) -> Answer:
        code = await self._grants.allow(sign_in, request.note)
        if code is None:
            return error_page(browser.OVER, "oauth-answered-twice", status=403)
        return _back(request, sign_in, {"code": code})

    async def _deny(self, request: Request, sign_in: SignIn) -> Answer:
        await self._sign_ins.forget(sign_in)
        told = {"error": "access_denied", "error_description": "The person said no."}
        return _back(request, sign_in, told, rule="oauth-denied-by-person")


def _back(
    request: Request, sign_in: SignIn, told: dict[str, str], rule: str | None = None
) -> Answer:
    """To the client, with our name (RFC 9207), and the browser's cookie taken back."""
    given = {**told, "state": sign_in.asked.state, "iss": request.base}
    gone = browser.cookie(request, sign_in, ended=True)
    return redirect(with_parameters(sign_in.asked.redirect_uri, given), gone, rule=rule)


def _shown(sign_in: SignIn) -> Answer:
    asked, subject = sign_in.asked, sign_in.subject
    assert subject is not None
    return page(
        "consent",
        leads_to=redirects.origin(asked.redirect_uri),
        action=paths.CONSENT,
        request=sign_in.id,
        form_token=sign_in.form_token,
        client=asked.client_name,
        host=urlsplit(asked.client_id).netloc if is_document(asked.client_id) else None,
        place=redirects.place(asked.redirect_uri),
        tools=bool(asked.scope),
        person=subject.shown,
    )

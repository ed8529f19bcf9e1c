"""A page of ours to sign in with a key: the admin key, or one of `toolgate keys create`.

The key comes in the body of a POST and goes nowhere: not into an address, a cookie or a log.
"""

from dataclasses import replace

from toolgate.gate.errors import RateLimited
from toolgate.gate.principal import UNKNOWN_ACTOR, Actor, Kind, Principal
from toolgate.identity.guesses import Guesses, Unusable
from toolgate.identity.keys import Keys
from toolgate.identity.oauth import browser, paths, redirects
from toolgate.identity.oauth.messages import Request, Response
from toolgate.identity.oauth.page_templates import error_page, page
from toolgate.identity.oauth.refusals import ALREADY
from toolgate.identity.oauth.sign_ins import SignIn, SignIns
from toolgate.identity.oauth.subjects import subject_of

WRONG = "That key is not right, or has ended. Copy it whole, or ask for a new one."
PASTED = " \t\r\n"
"""What comes along when a key is copied; nothing else is taken off."""


class SignInPage:
    """Asks for a key."""

    methods = ("GET", "POST")

    def __init__(self, sign_ins: SignIns, keys: Keys, guesses: Guesses) -> None:
        self._sign_ins = sign_ins
        self._keys = keys
        self._guesses = guesses

    async def __call__(self, request: Request) -> Response:
        """Show the page, or read what it sends."""
        posted = request.method == "POST"
        parameters = request.form if posted else request.query
        sign_in = await browser.find_sign_in(request, self._sign_ins, parameters.get("request"))
        if isinstance(sign_in, Response):
            return sign_in
        if sign_in.allowed:
            return error_page(request, ALREADY, "oauth-answered-twice", status=403)
        if not posted:
            return _page(request, sign_in)
        if refusal := browser.forgery_refusal(request, sign_in):
            return refusal
        return await self._read(request, sign_in)

    async def _read(self, request: Request, sign_in: SignIn) -> Response:
        key = (request.form.get("key") or "").strip(PASTED)
        try:
            principal = await self._guesses.look_up(key, request.peer, self._person)
        except RateLimited as limited:
            message = f"Too many wrong keys. Try again in {limited.retry_after} s."
            return _page(request, sign_in, message, status=429, rule="oauth-too-many-guesses")
        except Unusable as unusable:
            return await self._wrong_key(request, sign_in, unusable.actor)
        if principal is None:
            return await self._wrong_key(request, sign_in)
        subject = subject_of(principal, self._keys)
        return await browser.redirect_to_consent(request, self._sign_ins, sign_in, subject)

    async def _wrong_key(
        self, request: Request, sign_in: SignIn, actor: Actor = UNKNOWN_ACTOR
    ) -> Response:
        await self._sign_ins.count_wrong_key(sign_in)
        response = _page(request, sign_in, WRONG, status=403, rule="oauth-wrong-key")
        return replace(response, actor=actor)

    async def _person(self, key: str) -> Principal | None:
        """Who holds a key, unless it is an agent or a node, which sign nobody in."""
        principal = await self._keys.look_up(key)
        machine = principal is not None and principal.kind in (Kind.AGENT, Kind.NODE)
        return None if machine else principal


def _page(
    request: Request,
    sign_in: SignIn,
    problem: str | None = None,
    *,
    status: int = 200,
    rule: str | None = None,
) -> Response:
    return page(
        request,
        "sign_in",
        status=status,
        rule=rule,
        action=paths.SIGN_IN,
        sign_in=sign_in.id,
        form_token=sign_in.form_token,
        client=sign_in.asked.client_name,
        place=redirects.describe(sign_in.asked.redirect_uri),
        problem=problem,
    )

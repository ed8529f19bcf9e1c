"""A page of ours to sign in with a key: the admin key, or one of `toolgate keys create`.

The key comes in the body of a POST and goes nowhere: not into an address, a cookie or a log.
"""

from toolgate.gate.errors import RateLimited
from toolgate.gate.limits import Limits
from toolgate.gate.principal import Kind, Principal
from toolgate.identity.keys import SETTING_KEY_ID, Keys
from toolgate.identity.oauth import browser, paths
from toolgate.identity.oauth.messages import Answer, Request, redirect, with_parameters
from toolgate.identity.oauth.rendering import page
from toolgate.identity.oauth.sign_ins import SignIn, SignIns, Subject

WRONG = "That key is not right, or has ended."
GUESSES = "sign-in"
PASTED = " \t\r\n"
"""What comes along when a key is copied; nothing else is taken off."""


class SignInPage:
    """Asks for a key."""

    methods = ("GET", "POST")

    def __init__(self, sign_ins: SignIns, keys: Keys, limits: Limits) -> None:
        self._sign_ins = sign_ins
        self._keys = keys
        self._limits = limits

    async def __call__(self, request: Request) -> Answer:
        """Show the page, or read what it sends."""
        posted = request.method == "POST"
        given = request.form if posted else request.query
        sign_in = await browser.found(request, self._sign_ins, given.get("request"))
        if isinstance(sign_in, Answer):
            return sign_in
        if not posted:
            return _shown(sign_in)
        if refused := browser.forged(request, sign_in):
            return refused
        return await self._read(request, sign_in)

    async def _read(self, request: Request, sign_in: SignIn) -> Answer:
        try:
            await self._limits.check_misses(GUESSES, request.peer)
        except RateLimited as limited:
            return _shown(sign_in, limited.message, status=429, rule="oauth-too-many-guesses")
        principal = await self._keys.identify((request.form.get("key") or "").strip(PASTED))
        if principal is None or principal.kind is Kind.AGENT:
            await self._limits.missed(GUESSES, request.peer)
            await self._sign_ins.missed(sign_in)
            return _shown(sign_in, WRONG, status=403, rule="oauth-wrong-key")
        await self._sign_ins.signed_in(sign_in, self._subject(principal), request.note)
        return redirect(with_parameters(request.base + paths.CONSENT, {"request": sign_in.id}))

    def _subject(self, principal: Principal) -> Subject:
        if principal.id == SETTING_KEY_ID:
            mark = self._keys.admin_mark
            return Subject(
                shown="the holder of the admin key",
                key_id=SETTING_KEY_ID,
                key_mark=mark.hex() if mark else None,
            )
        key_id = principal.id.removeprefix("key:")
        role = "an admin" if principal.kind is Kind.ADMIN_KEY else "a user"
        shown = principal.user_id or f"{role}, with key {key_id}"
        return Subject(shown=shown, user_id=principal.user_id, key_id=key_id)


def _shown(
    sign_in: SignIn, problem: str | None = None, *, status: int = 200, rule: str | None = None
) -> Answer:
    return page(
        "sign_in",
        status=status,
        rule=rule,
        action=paths.SIGN_IN,
        request=sign_in.id,
        form_token=sign_in.form_token,
        client=sign_in.asked.client_name,
        problem=problem,
    )

"""The browser is back from the provider that signed the person in."""

from toolgate.identity.oauth import browser, paths
from toolgate.identity.oauth.messages import Request, Response
from toolgate.identity.oauth.page_templates import error_page
from toolgate.identity.oauth.sign_ins import SignIn, SignIns, Subject
from toolgate.identity.providers import Profile, Provider, ProviderUnavailable, SignInFailed
from toolgate.identity.users import Users


class CallbackEndpoint:
    """Learns from the provider who signed in."""

    methods = ("GET",)

    def __init__(self, sign_ins: SignIns, provider: Provider, users: Users) -> None:
        self._sign_ins = sign_ins
        self._provider = provider
        self._users = users

    async def __call__(self, request: Request) -> Response:
        """Read what the browser brought, once, and go on to consent."""
        state = request.query.get("state") or ""
        sign_in = await browser.find_sign_in(request, self._sign_ins, state.partition(".")[0])
        if isinstance(sign_in, Response):
            return sign_in
        if state != sign_in.state or "state" in request.query.repeated:
            return error_page(request, browser.OVER, "oauth-wrong-state", status=403)
        if sign_in.subject is not None:
            return error_page(request, browser.OVER, "oauth-signed-in-twice", status=403)
        try:
            profile = await self._profile(request, sign_in)
        except SignInFailed as failed:
            await self._sign_ins.end(sign_in)
            status = 502 if isinstance(failed, ProviderUnavailable) else 403
            return error_page(request, str(failed), "oauth-sign-in-failed", status=status)
        label = profile.email or profile.name or profile.uid
        subject = Subject(shown=label, user_id=profile.uid)
        return await browser.redirect_to_consent(request, self._sign_ins, sign_in, subject)

    async def _profile(self, request: Request, sign_in: SignIn) -> Profile:
        back = request.base + paths.CALLBACK
        values = request.query.values
        profile = await self._provider.finish(values, sign_in.remembered, back)
        await self._users.ensure_record(profile)
        return profile

"""Signing in on the app's own site, which hands back a Firebase ID token."""

from collections.abc import Mapping
from typing import Any

from toolgate.identity.providers import Profile, SignInFailed, SignInStart
from toolgate.identity.providers.addresses import check_state, checked_url, with_query
from toolgate.identity.providers.id_tokens import ExpectedClaims, is_past, profile, verified_claims
from toolgate.identity.providers.signing_keys import SigningKeys
from toolgate.outbound.json_fetcher import JsonFetcher

ISSUER = "https://securetoken.google.com"
ALGORITHMS = ("RS256",)
MAX_UID = 128


class SiteProvider:
    """Sends the browser to the app's site; it comes back with `code=ID_TOKEN`."""

    def __init__(self, site_url: str, project: str, keys_url: str, *, fetcher: JsonFetcher) -> None:
        self._site_url = checked_url("sign_in.site_url", site_url)
        self._project = project
        self._keys = SigningKeys(fetcher, checked_url("sign_in.firebase_keys_url", keys_url))
        self._expected = ExpectedClaims(f"{ISSUER}/{project}", project, ALGORITHMS)

    async def begin(self, state: str, back: str) -> SignInStart:
        """Where the site's sign-in page is, told where to send the browser afterwards."""
        query = {"redirect_uri": back, "state": state, "mcp": "true"}
        return SignInStart(with_query(self._site_url, query), {"state": state})

    async def finish(
        self, query: Mapping[str, str], remembered: Mapping[str, str], back: str
    ) -> Profile:
        """Verify the ID token that came as `code`."""
        del back  # the token is not bound to it
        check_state(query, remembered)
        token = query.get("code")
        if not token:
            raise SignInFailed("The site sent no ID token. Sign in again.")
        claims = await verified_claims(token, self._keys, self._expected)
        self._check(claims)
        return profile(claims)

    def _check(self, claims: dict[str, Any]) -> None:
        """What Firebase promises of its tokens beyond the standard."""
        if claims["aud"] != self._project:
            raise SignInFailed("The ID token is for another project. Sign in again.")
        if len(claims["sub"]) > MAX_UID:
            raise SignInFailed("The ID token names no user. Sign in again.")
        if not is_past(claims.get("auth_time")):
            raise SignInFailed("The ID token does not say when the user signed in. Sign in again.")

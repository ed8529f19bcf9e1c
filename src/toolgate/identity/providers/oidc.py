"""Signing in at any OpenID Connect provider: discovery, authorization code, PKCE, nonce."""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote_plus

from toolgate.identity.providers import Profile, ProviderUnavailable, SignInFailed, SignInStart
from toolgate.identity.providers.addresses import check_state, checked_url, with_query
from toolgate.identity.providers.discovery import Discovery, Metadata
from toolgate.identity.providers.id_tokens import ExpectedClaims, profile, verified_claims
from toolgate.identity.providers.signing_keys import SigningKeys
from toolgate.outbound.json_fetcher import JsonFetcher, JsonObject
from toolgate.outbound.responses import FetchFailed

ALGORITHMS = ("RS256", "ES256", "PS256", "EdDSA", "Ed25519")
"""Signatures with a key pair only: none and HS* are not among them, whatever a token says."""

SCOPE = "openid email profile"
MAX_UID = 255

REFUSED = {
    "access_denied": "The sign-in was refused or cancelled at the provider.",
    "login_required": "The provider wants you to sign in there first.",
    "interaction_required": "The provider wants you to sign in there first.",
    "consent_required": "The provider wants your consent first.",
    "temporarily_unavailable": "The provider is not available at the moment.",
    "server_error": "The provider failed.",
}


class OidcProvider:
    """Sends the browser to the provider and exchanges the code it brings back."""

    def __init__(
        self, issuer: str, client_id: str, client_secret: str | None = None, *, fetcher: JsonFetcher
    ) -> None:
        self._client_id = client_id
        self._client_secret = client_secret
        self._fetcher = fetcher
        self._discovery = Discovery(fetcher, checked_url("sign_in.oidc_issuer", issuer))
        self._expected = ExpectedClaims(issuer, client_id, ALGORITHMS)
        self._keys: tuple[str, SigningKeys] | None = None

    async def begin(self, state: str, back: str) -> SignInStart:
        """The provider's sign-in page for this attempt, with a nonce and a verifier of its own."""
        metadata = await self._discovery.metadata()
        verifier, nonce = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
        query = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": back,
            "scope": SCOPE,
            "state": state,
            "nonce": nonce,
            "code_challenge": _challenge(verifier),
            "code_challenge_method": "S256",
        }
        url = with_query(metadata.authorization_endpoint, query)
        return SignInStart(url, {"state": state, "nonce": nonce, "verifier": verifier})

    async def finish(
        self, query: Mapping[str, str], remembered: Mapping[str, str], back: str
    ) -> Profile:
        """Exchange the code, verify the ID token, and ask for the profile if it is not in it."""
        check_state(query, remembered)
        metadata = await self._discovery.metadata()
        _check_sender(query, metadata)
        if "error" in query:
            why = REFUSED.get(query["error"], "The provider did not sign you in.")
            raise SignInFailed(f"{why} Start again.")
        if not query.get("code"):
            raise SignInFailed("The provider sent no code. Start again.")
        tokens = await self._exchange_code(metadata, query["code"], remembered, back)
        claims = await verified_claims(tokens["id_token"], self._keys_at(metadata), self._expected)
        self._check(claims, remembered)
        return profile(await self._with_userinfo(metadata, claims, tokens.get("access_token")))

    async def _exchange_code(
        self, metadata: Metadata, code: str, remembered: Mapping[str, str], back: str
    ) -> dict[str, Any]:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": back,
            "code_verifier": remembered.get("verifier", ""),
        }
        basic = None
        if self._client_secret is None:
            form["client_id"] = self._client_id
        else:
            basic = (quote_plus(self._client_id), quote_plus(self._client_secret))
        answer = await _provider_response(
            self._fetcher.post(metadata.token_endpoint, form, basic=basic)
        )
        if answer.status != 200 or not isinstance(answer.body.get("id_token"), str):
            raise SignInFailed("The provider did not accept the code it gave. Start again.")
        return answer.body

    def _keys_at(self, metadata: Metadata) -> SigningKeys:
        if self._keys is None or self._keys[0] != metadata.jwks_uri:
            self._keys = (metadata.jwks_uri, SigningKeys(self._fetcher, metadata.jwks_uri))
        return self._keys[1]

    def _check(self, claims: dict[str, Any], remembered: Mapping[str, str]) -> None:
        expected, nonce = remembered.get("nonce", ""), claims.get("nonce")
        if not expected or not isinstance(nonce, str) or not _equal(expected, nonce):
            raise SignInFailed("The ID token belongs to another sign-in. Start again.")
        alone = claims["aud"] in (self._client_id, [self._client_id])
        if claims.get("azp", self._client_id if alone else None) != self._client_id:
            raise SignInFailed("The ID token was given to another client. Start again.")
        if len(claims["sub"]) > MAX_UID:
            raise SignInFailed("The ID token names no user. Start again.")

    async def _with_userinfo(
        self, metadata: Metadata, claims: dict[str, Any], access_token: object
    ) -> dict[str, Any]:
        """The claims with those that many providers only tell when asked for the profile."""
        complete = "email" in claims or "name" in claims
        if complete or metadata.userinfo_endpoint is None or not isinstance(access_token, str):
            return claims
        more = await _provider_response(
            self._fetcher.get(metadata.userinfo_endpoint, bearer=access_token)
        )
        if more.body.get("sub") != claims["sub"]:
            raise SignInFailed("The provider answered about another user. Start again.")
        return {**more.body, **claims}


def _check_sender(query: Mapping[str, str], metadata: Metadata) -> None:
    """Refuse an answer of another provider (RFC 9207), also one that brings an error."""
    issuer = query.get("iss")
    if (issuer is None and metadata.names_itself) or issuer not in {None, metadata.issuer}:
        raise SignInFailed("This answer is from another provider. Start again.")


async def _provider_response(asking: Any) -> JsonObject:
    try:
        return await asking
    except FetchFailed as problem:
        raise ProviderUnavailable(f"The provider cannot be used now: {problem}") from problem


def _challenge(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())

"""An OpenID Connect provider that lies, fails or mixes things up: nobody is signed in."""

import base64
import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc.jwk import ECKey, OKPKey, RSAKey
from tests.identity.providers.tokens import (
    PrivateKey,
    changed,
    jwk_set,
    now,
    rsa,
    signed,
    signed_with_a_secret,
    signed_with_the_public_key,
    unsigned,
)
from tests.identity.publisher import Answer, Publisher, Seen, publishing
from tests.patience import PATIENT

from toolgate.identity.providers import Profile, SignInFailed, SignInStart
from toolgate.identity.providers.oidc import OidcProvider
from toolgate.outbound.client import Outbound
from toolgate.outbound.hops import AddressPolicy
from toolgate.outbound.json_fetcher import JsonFetcher

pytestmark = pytest.mark.anyio

BACK = "https://gate.example/sign-in/back"
CLIENT = "our client"
DISCOVERY = "/.well-known/openid-configuration"

Forge = Callable[[dict[str, Any]], str]


@pytest.fixture(scope="module")
def key() -> RSAKey:
    return rsa("first")


class Upstream:
    """A provider whose every word can be changed."""

    def __init__(self, published: Publisher, key: RSAKey) -> None:
        self.published = published
        self.issuer = published.url
        self.token: Forge = lambda claims: signed(key, claims)
        self.claims: dict[str, Any] = {}
        self.token_answer: Answer | None = None
        self.userinfo: dict[str, Any] = {"sub": "jane", "email": "userinfo@example.com"}
        self.nonce = ""
        self.describe()
        self.publish(key)
        published.answers["/token"] = self._exchange
        published.answers["/userinfo"] = lambda _: Answer(self.userinfo)

    def publish(self, *keys: PrivateKey) -> None:
        self.published.answers["/keys"] = Answer(jwk_set(*keys))

    def describe(self, **fields: Any) -> None:
        document = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            **fields,
        }
        told = {name: value for name, value in document.items() if value is not None}
        self.published.answers[DISCOVERY] = Answer(told)

    def _exchange(self, _: Seen) -> Answer:
        usual = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": "jane",
            "iat": now(),
            "exp": now(300),
            "nonce": self.nonce,
            "email": "jane@example.com",
        }
        claims = {name: v for name, v in (usual | self.claims).items() if v is not None}
        tokens = {"id_token": self.token(claims), "access_token": "access-1"}
        return self.token_answer or Answer({"token_type": "Bearer", **tokens})


@pytest.fixture
def upstream(key: RSAKey) -> Iterator[Upstream]:
    with publishing() as publisher:
        yield Upstream(publisher, key)


@pytest.fixture
async def fetcher() -> AsyncIterator[JsonFetcher]:
    async with Outbound() as outbound:
        yield JsonFetcher(outbound=outbound, address_policy=AddressPolicy.PROXIED, seconds=PATIENT)


@pytest.fixture
def provider(upstream: Upstream, fetcher: JsonFetcher) -> OidcProvider:
    return OidcProvider(upstream.issuer, CLIENT, "secret", fetcher=fetcher)


async def begin(provider: OidcProvider, upstream: Upstream) -> SignInStart:
    begun = await provider.begin("state-1", BACK)
    upstream.nonce = begun.remembered["nonce"]
    return begun


async def finish(provider: OidcProvider, upstream: Upstream, **query: str) -> Profile:
    begun = await begin(provider, upstream)
    brought = {"code": "code-1", "state": "state-1", **query}
    return await provider.finish(brought, begun.remembered, BACK)


async def test_the_request_carries_all_that_protects_it(
    provider: OidcProvider, upstream: Upstream
) -> None:
    begun = await begin(provider, upstream)
    query = {name: values[0] for name, values in parse_qs(urlsplit(begun.url).query).items()}
    assert begun.url.startswith(f"{upstream.issuer}/authorize?")
    verifier = begun.remembered["verifier"]
    digest = hashlib.sha256(verifier.encode()).digest()
    assert query == {
        "response_type": "code",
        "client_id": CLIENT,
        "redirect_uri": BACK,
        "scope": "openid email profile",
        "state": "state-1",
        "nonce": begun.remembered["nonce"],
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    assert 43 <= len(verifier) <= 128
    assert verifier not in begun.url
    assert (await begin(provider, upstream)).remembered["nonce"] != query["nonce"]


async def test_the_code_is_exchanged_with_the_secret_in_a_header(
    provider: OidcProvider, upstream: Upstream
) -> None:
    assert await finish(provider, upstream) == Profile("jane", "jane@example.com")
    asked = next(one for one in upstream.published.seen if one.path == "/token")
    basic = base64.b64encode(b"our+client:secret").decode()
    assert asked.headers["authorization"] == f"Basic {basic}"
    assert asked.form.keys() == {"grant_type", "code", "redirect_uri", "code_verifier"}
    assert upstream.published.asked("/userinfo") == 0, "the token said enough"


async def test_without_a_secret_only_the_client_id_is_sent(
    upstream: Upstream, fetcher: JsonFetcher
) -> None:
    provider = OidcProvider(upstream.issuer, CLIENT, fetcher=fetcher)
    assert (await finish(provider, upstream)).uid == "jane"
    asked = next(one for one in upstream.published.seen if one.path == "/token")
    assert "authorization" not in asked.headers
    assert asked.form["client_id"] == CLIENT


@pytest.mark.parametrize(
    ("alg", "made"),
    [
        ("RS256", lambda: rsa("new")),
        ("PS256", lambda: rsa("new")),
        ("ES256", lambda: ECKey.generate_key("P-256", {"kid": "new"})),
        ("EdDSA", lambda: OKPKey.generate_key("Ed25519", {"kid": "new"})),
        ("Ed25519", lambda: OKPKey.generate_key("Ed25519", {"kid": "new"})),
    ],
)
async def test_each_allowed_signature_is_verified(
    provider: OidcProvider, upstream: Upstream, alg: str, made: Callable[[], PrivateKey]
) -> None:
    new = made()
    upstream.publish(new)
    upstream.token = lambda claims: signed(new, claims, alg)
    assert (await finish(provider, upstream)).uid == "jane"
    upstream.token = lambda claims: changed(signed(new, claims, alg), sub="admin")
    with pytest.raises(SignInFailed, match="not valid"):
        await finish(provider, upstream)


async def test_a_token_without_key_id_is_fine_when_there_is_one_key(
    provider: OidcProvider, upstream: Upstream, key: RSAKey
) -> None:
    upstream.token = lambda claims: signed(key, claims, kid=None)
    assert (await finish(provider, upstream)).uid == "jane"


async def test_a_token_without_key_id_is_refused_when_there_are_several(
    provider: OidcProvider, upstream: Upstream, key: RSAKey
) -> None:
    upstream.publish(key, rsa("second"))
    upstream.token = lambda claims: signed(key, claims, kid=None)
    with pytest.raises(SignInFailed, match="unknown key"):
        await finish(provider, upstream)


TOKENS: dict[str, Callable[[RSAKey], Forge]] = {
    "alg none": lambda key: lambda claims: unsigned(claims, kid=key.kid),
    "HS256 with the public key": lambda key: lambda c: signed_with_the_public_key(key, c),
    "HS256 with our secret": lambda _: lambda c: signed_with_a_secret(b"secret", c, kid="first"),
    "RS384, which is not on the list": lambda key: lambda c: signed(key, c, "RS384"),
    "another key": lambda _: lambda claims: signed(rsa("first"), claims),
    "tampered": lambda key: lambda claims: changed(signed(key, claims), sub="admin"),
    "not a token": lambda _: lambda _: "token",
}


@pytest.mark.parametrize("attack", TOKENS)
async def test_a_forged_token_is_refused(
    provider: OidcProvider, upstream: Upstream, key: RSAKey, attack: str
) -> None:
    upstream.token = TOKENS[attack](key)
    with pytest.raises(SignInFailed, match="The ID token is not valid"):
        await finish(provider, upstream)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"nonce": "of another sign-in"}, "another sign-in"),
        ({"nonce": None}, "another sign-in"),
        ({"nonce": 7}, "another sign-in"),
        ({"iss": "https://other.example"}, "not valid"),
        ({"iss": None}, "not valid"),
        ({"aud": "another client"}, "not valid"),
        ({"aud": []}, "not valid"),
        ({"aud": None}, "not valid"),
        ({"aud": [CLIENT, "another"]}, "another client"),
        ({"aud": [CLIENT, "another"], "azp": "another"}, "another client"),
        ({"azp": "another"}, "another client"),
        ({"exp": now(-61)}, "expired"),
        ({"exp": None}, "not valid"),
        ({"iat": now(86_400)}, "not valid"),
        ({"nbf": now(86_400)}, "not valid"),
        ({"sub": ""}, "not valid"),
        ({"sub": None}, "not valid"),
        ({"sub": "x" * 256}, "names no user"),
    ],
)
async def test_a_genuine_token_that_is_not_for_us_now_is_refused(
    provider: OidcProvider, upstream: Upstream, claims: dict[str, Any], reason: str
) -> None:
    upstream.claims = claims
    with pytest.raises(SignInFailed, match=reason):
        await finish(provider, upstream)


@pytest.mark.parametrize(
    "claims", [{"aud": [CLIENT]}, {"aud": [CLIENT, "another"], "azp": CLIENT}, {"azp": CLIENT}]
)
async def test_a_token_for_us_among_others_is_fine(
    provider: OidcProvider, upstream: Upstream, claims: dict[str, Any]
) -> None:
    upstream.claims = claims
    assert (await finish(provider, upstream)).uid == "jane"


async def test_the_profile_is_asked_for_when_the_token_says_little(
    provider: OidcProvider, upstream: Upstream
) -> None:
    upstream.claims = {"email": None}
    assert await finish(provider, upstream) == Profile("jane", "userinfo@example.com")
    asked = next(one for one in upstream.published.seen if one.path == "/userinfo")
    assert asked.headers["authorization"] == "Bearer access-1"


async def test_a_profile_of_another_user_is_refused(
    provider: OidcProvider, upstream: Upstream
) -> None:
    upstream.claims = {"email": None}
    for sub in ({"sub": "john"}, {}):
        upstream.userinfo = {"email": "john@example.com", **sub}
        with pytest.raises(SignInFailed, match="another user"):
            await finish(provider, upstream)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("access_denied", "The sign-in was refused or cancelled at the provider. Start again."),
        ("server_error", "The provider failed. Start again."),
        ("<script>", "The provider did not sign you in. Start again."),
    ],
)
async def test_an_error_is_told_in_words_of_our_own(
    provider: OidcProvider, upstream: Upstream, error: str, said: str
) -> None:
    begun = await begin(provider, upstream)
    query = {"state": "state-1", "error": error, "error_description": "<b>Believe me</b>"}
    with pytest.raises(SignInFailed) as refused:
        await provider.finish(query, begun.remembered, BACK)
    assert str(refused.value) == said
    assert upstream.published.asked("/token") == 0


async def test_an_answer_to_another_sign_in_is_refused(
    provider: OidcProvider, upstream: Upstream
) -> None:
    for state in ("state-2", "", "ä"):
        with pytest.raises(SignInFailed, match="another sign-in"):
            await finish(provider, upstream, state=state)
    assert upstream.published.asked("/token") == 0


async def test_an_answer_of_another_provider_is_refused(
    provider: OidcProvider, upstream: Upstream
) -> None:
    with pytest.raises(SignInFailed, match="from another provider"):
        await finish(provider, upstream, iss="https://other.example")
    assert (await finish(provider, upstream, iss=upstream.issuer)).uid == "jane"
    assert (await finish(provider, upstream)).uid == "jane", "it does not promise to name itself"


async def test_an_answer_without_a_name_is_refused_when_one_was_promised(
    provider: OidcProvider, upstream: Upstream
) -> None:
    upstream.describe(authorization_response_iss_parameter_supported=True)
    for query in ({}, {"error": "access_denied"}):
        with pytest.raises(SignInFailed, match="from another provider"):
            await finish(provider, upstream, **query)
    assert upstream.published.asked("/token") == 0
    assert (await finish(provider, upstream, iss=upstream.issuer)).uid == "jane"


async def test_an_answer_without_a_code_is_refused(
    provider: OidcProvider, upstream: Upstream
) -> None:
    with pytest.raises(SignInFailed, match="no code"):
        await finish(provider, upstream, code="")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer({"error": "invalid_grant"}, 400), "did not accept the code"),
        (Answer({"error": "invalid_client"}, 401), "did not accept the code"),
        (Answer({"access_token": "only"}), "did not accept the code"),
        (Answer({"id_token": 7}), "did not accept the code"),
        (Answer({}, 500), "cannot be used now"),
        (Answer(b"no"), "cannot be used now"),
        (Answer({}, 307, {"Location": "https://other.example/"}), "cannot be used now"),
    ],
)
async def test_a_failed_exchange_signs_nobody_in(
    provider: OidcProvider, upstream: Upstream, answer: Answer, reason: str
) -> None:
    upstream.token_answer = answer
    with pytest.raises(SignInFailed, match=reason):
        await finish(provider, upstream)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"issuer": "https://other.example"}, "names another issuer"),
        ({"issuer": None}, "names another issuer"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "authorization_endpoint"),
        ({"authorization_endpoint": None}, "authorization_endpoint"),
        ({"token_endpoint": "http://other.example/token"}, "token_endpoint"),
        ({"jwks_uri": 7}, "jwks_uri"),
        ({"jwks_uri": "https://[::1/"}, "jwks_uri"),
        ({"userinfo_endpoint": "ftp://other.example"}, "userinfo_endpoint"),
    ],
)
async def test_a_document_against_the_rules_is_refused(
    provider: OidcProvider, upstream: Upstream, fields: dict[str, Any], reason: str
) -> None:
    upstream.describe(**fields)
    with pytest.raises(SignInFailed, match=reason):
        await provider.begin("state-1", BACK)
    upstream.describe()
    assert (await finish(provider, upstream)).uid == "jane", "the problem is not kept"


async def test_the_document_is_asked_for_once(provider: OidcProvider, upstream: Upstream) -> None:
    for _ in range(3):
        await finish(provider, upstream)
    assert upstream.published.asked(DISCOVERY) == 1
    assert upstream.published.asked("/keys") == 1


async def test_a_provider_that_is_away_is_told_plainly(fetcher: JsonFetcher) -> None:
    with publishing() as published:
        url = published.url
    provider = OidcProvider(url, CLIENT, fetcher=fetcher)
    with pytest.raises(
        SignInFailed,
        match=r"^The provider cannot be used now: 127\.0\.0\.1 could not be reached\.$",
    ):
        await provider.begin("state-1", BACK)


def test_an_issuer_in_the_open_is_refused_at_the_start() -> None:
    with pytest.raises(ValueError, match=r"^Setting sign_in\.oidc_issuer: must begin with https"):
        OidcProvider("http://login.example", CLIENT, fetcher=JsonFetcher(outbound=Outbound()))

"""Signing in on the app's own site: a Firebase ID token comes back, and is not believed easily."""

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc.jwk import RSAKey
from tests.identity.providers.tokens import (
    changed,
    jwk_set,
    now,
    rsa,
    signed,
    signed_with_the_public_key,
    unsigned,
)
from tests.identity.publisher import Answer, Publisher, publishing
from tests.patience import PATIENT

from toolgate.identity.providers import Profile, SignInFailed
from toolgate.identity.providers.signing_keys import SigningKeys
from toolgate.identity.providers.site import SiteProvider
from toolgate.outbound.client import Outbound
from toolgate.outbound.hops import AddressPolicy
from toolgate.outbound.json_fetcher import JsonFetcher

pytestmark = pytest.mark.anyio

PROJECT = "demo-project"
BACK = "https://gate.example/sign-in/back"
SITE = "https://app.example/token"


@pytest.fixture(scope="module")
def key() -> RSAKey:
    return rsa("first")


@pytest.fixture(scope="module")
def stranger() -> RSAKey:
    """A key of the same name that nobody published."""
    return rsa("first")


@pytest.fixture
def published(key: RSAKey) -> Iterator[Publisher]:
    with publishing() as publisher:
        publisher.answers["/keys"] = Answer(jwk_set(key))
        yield publisher


@pytest.fixture
async def fetcher() -> AsyncIterator[JsonFetcher]:
    async with Outbound() as outbound:
        yield JsonFetcher(outbound=outbound, address_policy=AddressPolicy.PROXIED, seconds=PATIENT)


@pytest.fixture
def site(published: Publisher, fetcher: JsonFetcher) -> SiteProvider:
    return SiteProvider(SITE, PROJECT, f"{published.url}/keys", fetcher=fetcher)


def claims(**others: Any) -> dict[str, Any]:
    """What Firebase says of a user."""
    usual = {
        "iss": f"https://securetoken.google.com/{PROJECT}",
        "aud": PROJECT,
        "sub": "user-1",
        "user_id": "user-1",
        "iat": now(-10),
        "exp": now(3600),
        "auth_time": now(-100),
        "email": "jane@example.com",
        "email_verified": True,
        "name": "Jane Doe",
        "firebase": {"identities": {}, "sign_in_provider": "password"},
    }
    return {name: value for name, value in (usual | others).items() if value is not None}


async def finish(site: SiteProvider, token: str) -> Profile:
    begun = await site.begin("state-1", BACK)
    return await site.finish({"code": token, "state": "state-1"}, begun.remembered, BACK)


async def test_the_browser_is_sent_to_the_site(site: SiteProvider) -> None:
    begun = await site.begin("state-1", BACK)
    assert begun.url.startswith(f"{SITE}?")
    query = parse_qs(urlsplit(begun.url).query)
    assert query == {"redirect_uri": [BACK], "state": ["state-1"], "mcp": ["true"]}


async def test_a_site_with_a_query_of_its_own_keeps_it(fetcher: JsonFetcher) -> None:
    site = SiteProvider(f"{SITE}?lang=de", PROJECT, "https://keys.example/", fetcher=fetcher)
    query = parse_qs(urlsplit((await site.begin("s", BACK)).url).query)
    assert (query["lang"], query["state"]) == (["de"], ["s"])


async def test_a_good_token_signs_in(site: SiteProvider, key: RSAKey) -> None:
    profile = await finish(site, signed(key, claims()))
    assert profile == Profile(uid="user-1", email="jane@example.com", name="Jane Doe")


@pytest.mark.parametrize(
    ("others", "email"),
    [
        ({"email_verified": False}, None),
        ({"email_verified": None}, "jane@example.com"),
        ({"email": None, "email_verified": None}, None),
        ({"email": 7}, None),
    ],
)
async def test_an_unverified_email_is_not_passed_on(
    site: SiteProvider, key: RSAKey, others: dict[str, Any], email: str | None
) -> None:
    assert (await finish(site, signed(key, claims(**others)))).email == email


async def test_a_user_without_a_name_signs_in(site: SiteProvider, key: RSAKey) -> None:
    token = signed(key, claims(name=None, email=None, email_verified=None))
    assert await finish(site, token) == Profile("user-1")


async def test_clocks_may_differ_by_a_minute(site: SiteProvider, key: RSAKey) -> None:
    early = claims(iat=now(40), auth_time=now(40))
    late = claims(iat=now(-3640), exp=now(-40))
    for times in (early, late):
        assert (await finish(site, signed(key, times))).uid == "user-1"


Forge = Callable[[RSAKey, RSAKey], str]

ATTACKS: dict[str, Forge] = {
    "alg none": lambda key, _: unsigned(claims(), kid=key.kid),
    "alg None": lambda key, _: unsigned(claims(), "None", kid=key.kid),
    "no signature": lambda key, _: signed(key, claims()).rpartition(".")[0] + ".",
    "RS256 without a signature": lambda key, _: unsigned(claims(), "RS256", kid=key.kid),
    "HS256 with the public key": lambda key, _: signed_with_the_public_key(key, claims()),
    "RS512": lambda key, _: signed(key, claims(), "RS512"),
    "PS256": lambda key, _: signed(key, claims(), "PS256"),
    "tampered subject": lambda key, _: changed(signed(key, claims()), sub="admin"),
    "tampered expiry": lambda key, _: changed(signed(key, claims(exp=now(-99))), exp=now(99)),
    "another key": lambda _, stranger: signed(stranger, claims()),
    "a key it brings along": lambda _, stranger: signed(
        stranger, claims(), jwk=stranger.as_dict(private=False)
    ),
    "a key id that is unknown": lambda key, _: signed(key, claims(), kid="unknown"),
    "a critical header": lambda key, _: unsigned(claims(), "RS256", kid=key.kid, crit=["x"], x=1),
    "expired": lambda key, _: signed(key, claims(iat=now(-4000), exp=now(-61))),
    "without expiry": lambda key, _: signed(key, claims(exp=None)),
    "expiry in words": lambda key, _: signed(key, claims(exp="tomorrow")),
    "issued in the future": lambda key, _: signed(key, claims(iat=now(90))),
    "not issued": lambda key, _: signed(key, claims(iat=None)),
    "signed in in the future": lambda key, _: signed(key, claims(auth_time=now(90))),
    "never signed in": lambda key, _: signed(key, claims(auth_time=None)),
    "signed in in words": lambda key, _: signed(key, claims(auth_time="yesterday")),
    "another issuer": lambda key, _: signed(
        key, claims(iss="https://securetoken.google.com/other")
    ),
    "a longer issuer": lambda key, _: signed(
        key, claims(iss=f"https://securetoken.google.com/{PROJECT}/")
    ),
    "without issuer": lambda key, _: signed(key, claims(iss=None)),
    "another audience": lambda key, _: signed(key, claims(aud="other")),
    "several audiences": lambda key, _: signed(key, claims(aud=[PROJECT, "other"])),
    "without audience": lambda key, _: signed(key, claims(aud=None)),
    "an empty subject": lambda key, _: signed(key, claims(sub="")),
    "without subject": lambda key, _: signed(key, claims(sub=None)),
    "a number as subject": lambda key, _: signed(key, claims(sub=7)),
    "a long subject": lambda key, _: signed(key, claims(sub="x" * 129)),
    "not a token": lambda *_: "hello",
    "not a token, with dots": lambda *_: "a.b.c",
    "five parts": lambda *_: "a.b.c.d.e",
    "not ASCII": lambda *_: "ä.ö.ü",
    "huge": lambda key, _: signed(key, claims(padding="x" * 20_000)),
    "empty": lambda *_: "",
}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_bad_token_is_refused(
    site: SiteProvider, key: RSAKey, stranger: RSAKey, attack: str
) -> None:
    forged = ATTACKS[attack](key, stranger)
    with pytest.raises(SignInFailed) as refused:
        await finish(site, forged)
    said = str(refused.value)
    assert said.endswith("Sign in again.")
    assert "user-1" not in said
    assert not forged or forged[:20] not in said


async def test_an_answer_to_another_sign_in_is_refused(site: SiteProvider, key: RSAKey) -> None:
    good = signed(key, claims())
    begun = await site.begin("state-1", BACK)
    for query in ({"code": good, "state": "state-2"}, {"code": good}, {"code": good, "state": ""}):
        with pytest.raises(SignInFailed, match="another sign-in"):
            await site.finish(query, begun.remembered, BACK)
    with pytest.raises(SignInFailed, match="another sign-in"):
        await site.finish({"code": good, "state": ""}, {}, BACK)


@pytest.mark.parametrize(
    ("site_url", "keys_url", "setting"),
    [
        ("http://app.example/token", "https://keys.example/", "sign_in.site_url"),
        ("javascript:alert(1)", "https://keys.example/", "sign_in.site_url"),
        (SITE, "http://keys.example/", "sign_in.firebase_keys_url"),
        (SITE, "", "sign_in.firebase_keys_url"),
    ],
)
def test_addresses_in_the_open_are_refused_at_the_start(
    site_url: str, keys_url: str, setting: str
) -> None:
    with pytest.raises(ValueError, match=f"^Setting {setting}: must begin with https://"):
        SiteProvider(site_url, PROJECT, keys_url, fetcher=JsonFetcher(outbound=Outbound()))


class TestKeys:
    """The keys are asked for seldom, and again when one is missing."""

    @pytest.fixture
    def clock(self) -> list[float]:
        return [1000.0]

    @pytest.fixture
    def keys(self, published: Publisher, fetcher: JsonFetcher, clock: list[float]) -> SigningKeys:
        return SigningKeys(fetcher, f"{published.url}/keys", clock=lambda: clock[0])

    @pytest.mark.parametrize(
        ("headers", "kept"),
        [
            ({}, 3600),
            ({"Cache-Control": "public, max-age=600"}, 600),
            ({"Cache-Control": "no-cache"}, 60),
            ({"Cache-Control": "max-age=999999"}, 86400),
        ],
    )
    async def test_they_are_kept_as_long_as_said_within_bounds(
        self,
        published: Publisher,
        keys: SigningKeys,
        clock: list[float],
        key: RSAKey,
        headers: dict[str, str],
        kept: float,
    ) -> None:
        published.answers["/keys"] = Answer(jwk_set(key), headers=headers)
        await keys.key("first")
        clock[0] += kept - 1
        await keys.key("first")
        assert published.asked("/keys") == 1
        clock[0] += 1
        await keys.key("first")
        assert published.asked("/keys") == 2

    async def test_a_new_key_is_found_and_strangers_cannot_make_us_ask_all_the_time(
        self, published: Publisher, keys: SigningKeys, clock: list[float], key: RSAKey
    ) -> None:
        await keys.key("first")
        published.answers["/keys"] = Answer(jwk_set(key, rsa("second")))
        for _ in range(5):
            with pytest.raises(SignInFailed, match="unknown key"):
                await keys.key("second")
        assert published.asked("/keys") == 1
        clock[0] += 30
        assert (await keys.key("second")).kid == "second"
        for _ in range(5):
            with pytest.raises(SignInFailed, match="unknown key"):
                await keys.key("third")
        assert published.asked("/keys") == 2

    async def test_a_withdrawn_key_is_forgotten(
        self, published: Publisher, keys: SigningKeys, clock: list[float]
    ) -> None:
        await keys.key("first")
        published.answers["/keys"] = Answer(jwk_set(rsa("second")))
        clock[0] += 3600
        with pytest.raises(SignInFailed, match="unknown key"):
            await keys.key("first")

    async def test_keys_of_no_use_are_left_out(
        self, published: Publisher, keys: SigningKeys, key: RSAKey
    ) -> None:
        public = jwk_set(key)["keys"][0]
        others = [
            "nonsense",
            {"kty": "oct", "kid": "secret", "k": "c2VjcmV0"},
            {"kty": "LATTICE", "kid": "new"},
            {"kty": "RSA", "kid": "broken"},
            {**public, "kid": "for encryption", "use": "enc"},
        ]
        published.answers["/keys"] = Answer({"keys": [*others, public]})
        assert (await keys.key(None)).kid == "first", "the only one left"
        for kid in ("secret", "new", "broken", "for encryption"):
            with pytest.raises(SignInFailed, match="unknown key"):
                await keys.key(kid)

    @pytest.mark.parametrize(
        "answer", [Answer({}, 500), Answer(b"no"), Answer(iter([b" " * 300_000]))]
    )
    async def test_without_keys_nobody_signs_in(
        self, published: Publisher, keys: SigningKeys, answer: Answer
    ) -> None:
        published.answers["/keys"] = answer
        with pytest.raises(SignInFailed, match="keys of the sign-in are not available"):
            await keys.key("first")

    async def test_slow_keys_end_in_time(self, published: Publisher, fetcher: JsonFetcher) -> None:
        over = threading.Event()
        published.answers["/keys"] = Answer(b"{" for _ in iter(lambda: over.wait(30), True))
        try:
            hasty = replace(fetcher, seconds=0.2)
            with pytest.raises(SignInFailed, match=r"did not answer within 0\.2 s"):
                await SigningKeys(hasty, f"{published.url}/keys").key("first")
        finally:
            over.set()

    @pytest.mark.parametrize("body", [{}, {"keys": {}}, {"keys": []}])
    async def test_an_empty_set_has_no_key(
        self, published: Publisher, keys: SigningKeys, body: dict[str, Any]
    ) -> None:
        published.answers["/keys"] = Answer(body)
        with pytest.raises(SignInFailed, match="unknown key"):
            await keys.key("first")

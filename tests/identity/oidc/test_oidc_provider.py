"""Signing in through a real OpenID Connect provider: npm `oidc-provider`, with its own pages."""

from collections.abc import AsyncIterator

import pytest
from tests.identity.oidc.provider import BACK, sign_in
from tests.patience import PATIENT

from toolgate.identity.providers import Profile, SignInFailed
from toolgate.identity.providers.oidc import OidcProvider
from toolgate.outbound.client import Outbound
from toolgate.outbound.hops import AddressPolicy
from toolgate.outbound.json_fetcher import JsonFetcher

pytestmark = pytest.mark.anyio

CLIENTS = [("confidential app", "a secret: 100% + more"), ("public", None)]


@pytest.fixture
async def fetcher() -> AsyncIterator[JsonFetcher]:
    async with Outbound() as outbound:
        yield JsonFetcher(outbound=outbound, address_policy=AddressPolicy.PROXIED, seconds=PATIENT)


@pytest.mark.parametrize(("client_id", "secret"), CLIENTS)
async def test_a_person_signs_in(
    issuer: str, fetcher: JsonFetcher, client_id: str, secret: str | None
) -> None:
    provider = OidcProvider(issuer, client_id, secret, fetcher=fetcher)
    begun = await provider.begin("state-1", BACK)
    brought = await sign_in(begun.url, "jane")
    assert (brought["state"], brought["iss"]) == ("state-1", issuer)
    profile = await provider.finish(brought, begun.remembered, BACK)
    assert profile == Profile(uid="jane", email="jane@example.com", name="JANE")


async def test_an_email_the_provider_did_not_verify_is_left_out(
    issuer: str, fetcher: JsonFetcher
) -> None:
    provider = OidcProvider(issuer, *CLIENTS[0], fetcher=fetcher)
    begun = await provider.begin("state-1", BACK)
    brought = await sign_in(begun.url, "unverified")
    profile = await provider.finish(brought, begun.remembered, BACK)
    assert profile == Profile(uid="unverified", email=None, name="UNVERIFIED")


async def test_a_person_refuses(issuer: str, fetcher: JsonFetcher) -> None:
    provider = OidcProvider(issuer, *CLIENTS[0], fetcher=fetcher)
    begun = await provider.begin("state-1", BACK)
    brought = await sign_in(begun.url, None)
    assert brought["error"] == "access_denied"
    with pytest.raises(SignInFailed, match="refused or cancelled at the provider"):
        await provider.finish(brought, begun.remembered, BACK)


async def test_a_code_works_once(issuer: str, fetcher: JsonFetcher) -> None:
    provider = OidcProvider(issuer, *CLIENTS[0], fetcher=fetcher)
    begun = await provider.begin("state-1", BACK)
    brought = await sign_in(begun.url, "jane")
    await provider.finish(brought, begun.remembered, BACK)
    with pytest.raises(SignInFailed, match="did not accept the code"):
        await provider.finish(brought, begun.remembered, BACK)


async def test_a_code_is_bound_to_the_verifier_and_the_way_back(
    issuer: str, fetcher: JsonFetcher
) -> None:
    provider = OidcProvider(issuer, *CLIENTS[0], fetcher=fetcher)
    begun = await provider.begin("state-1", BACK)
    other = await provider.begin("state-1", BACK)
    assert begun.remembered["verifier"] != other.remembered["verifier"]
    for remembered, back in ((other.remembered, BACK), (begun.remembered, BACK + "/other")):
        brought = await sign_in(begun.url, "jane")
        with pytest.raises(SignInFailed, match="did not accept the code"):
            await provider.finish(brought, remembered, back)


async def test_a_wrong_secret_signs_nobody_in(issuer: str, fetcher: JsonFetcher) -> None:
    provider = OidcProvider(issuer, CLIENTS[0][0], "wrong", fetcher=fetcher)
    begun = await provider.begin("state-1", BACK)
    brought = await sign_in(begun.url, "jane")
    with pytest.raises(SignInFailed, match="did not accept the code"):
        await provider.finish(brought, begun.remembered, BACK)


async def test_an_answer_must_name_this_provider(issuer: str, fetcher: JsonFetcher) -> None:
    provider = OidcProvider(issuer, *CLIENTS[0], fetcher=fetcher)
    begun = await provider.begin("state-1", BACK)
    brought = await sign_in(begun.url, "jane")
    without = {name: value for name, value in brought.items() if name != "iss"}
    for mixed_up in (without, {**brought, "iss": "https://other.example"}):
        with pytest.raises(SignInFailed, match="from another provider"):
            await provider.finish(mixed_up, begun.remembered, BACK)
    assert (await provider.finish(brought, begun.remembered, BACK)).uid == "jane"


async def test_an_issuer_spelled_otherwise_is_refused(issuer: str, fetcher: JsonFetcher) -> None:
    provider = OidcProvider(f"{issuer}/", *CLIENTS[0], fetcher=fetcher)
    with pytest.raises(SignInFailed, match="names another issuer"):
        await provider.begin("state-1", BACK)

"""Redirects are followed only when asked for, and each hop is checked like a first request."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.identity.certificates import contexts
from tests.identity.publisher import Answer, Publisher, publishing
from tests.outbound.patient import patient

from toolgate.outbound import addresses
from toolgate.outbound.client import Outbound
from toolgate.outbound.hops import AddressPolicy
from toolgate.outbound.responses import FetchFailed

pytestmark = pytest.mark.anyio

FOLLOWING = patient(redirects=3)
SECRETS = {"Authorization": "Bearer secret", "X-Api-Key": "secret", "Cookie": "a=secret"}


class Names:
    """A resolver: each name has answers of its own, of which the last one stays."""

    def __init__(self, addresses: dict[str, list[str]]) -> None:
        self._addresses = addresses
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        found = self._addresses.get(host, [host])
        return [found.pop(0) if len(found) > 1 else found[0]]


def moved(to: str, status: int = 302) -> Answer:
    return Answer({}, status, {"Location": to})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_followed_to_where_it_points(status: int, published: Publisher) -> None:
    published.answers["/old"] = moved("new?a=b", status)
    published.answers["/new"] = Answer({"it": "works"})
    async with Outbound([f"127.0.0.1:{published.port}"]) as outbound:
        fetched = await outbound.fetch(f"{published.url}/old", FOLLOWING, headers=SECRETS)
    assert (fetched.url, fetched.body) == (f"{published.url}/new?a=b", b'{"it": "works"}')
    assert published.seen[1].headers["authorization"] == "Bearer secret", "the origin is the same"


@pytest.mark.parametrize("address_policy", list(AddressPolicy))
async def test_without_being_asked_for_none_is_followed(
    address_policy: AddressPolicy, published: Publisher
) -> None:
    published.answers["/old"] = moved(f"{published.url}/new")
    async with Outbound([f"127.0.0.1:{published.port}"]) as outbound:
        with pytest.raises(FetchFailed, match="redirects are not followed"):
            await outbound.fetch(f"{published.url}/old", patient(), address_policy=address_policy)
    assert published.asked("/new") == 0


@pytest.mark.parametrize("address_policy", list(AddressPolicy))
@pytest.mark.parametrize(
    ("target", "told"),
    [
        ("https://inside.example/secret", "inside.example has no public address"),
        ("https://10.0.0.7/secret", "10.0.0.7 has no public address"),
        ("https://[::ffff:127.0.0.1]/secret", "has no public address"),
        ("http://inside.example/secret", "must begin with https://"),
        ("http://169.254.169.254/latest/meta-data", "must begin with https://"),
        ("{here}/secret", "must begin with https://"),
        ("https://inside.example:6379/", "must use port 443"),
        ("https://user:secret@open.example/", "no user or password"),
        ("file:///etc/passwd", "must name a host"),
        ("gopher://inside.example/", "must begin with https://"),
        ("https://[::1/", "not a valid URL"),
    ],
)
async def test_a_public_address_does_not_lead_inside(
    address_policy: AddressPolicy,
    target: str,
    told: str,
    published: Publisher,
    elsewhere: Publisher,
) -> None:
    """Whoever chose the first address: the second one was chosen by that server."""
    published.answers["/old"] = moved(target.format(here=elsewhere.url))
    names = Names({"inside.example": ["10.0.0.1"]})
    async with Outbound([f"127.0.0.1:{published.port}"], resolve=names) as outbound:
        with pytest.raises(FetchFailed, match=told):
            await outbound.fetch(f"{published.url}/old", FOLLOWING, address_policy=address_policy)
    assert elsewhere.seen == []


@pytest.fixture
def secured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Publisher, Any]]:
    """A server over TLS whose address counts as public, and who trusts it."""
    server, client = contexts("open.example", tmp_path)
    with publishing(server) as publisher:
        monkeypatch.setattr(addresses, "is_public", lambda one: one == "127.0.0.1")
        monkeypatch.setattr(addresses, "HTTPS_PORT", publisher.port)
        yield publisher, client


async def test_a_name_that_means_something_else_at_the_next_hop_is_refused(
    secured: tuple[Publisher, Any],
) -> None:
    """DNS rebinding between two hops of one request."""
    published, trust = secured
    names = Names({"open.example": ["127.0.0.1", "10.0.0.1"]})
    published.answers["/old"] = moved("/new")
    async with Outbound(resolve=names, tls=trust) as outbound:
        with pytest.raises(FetchFailed, match=r"open\.example has no public address"):
            await outbound.fetch(f"https://open.example:{published.port}/old", FOLLOWING)
    assert names.asked == ["open.example", "open.example"]
    assert [one.path for one in published.seen] == ["/old"]


async def test_a_redirect_does_not_give_up_tls(
    secured: tuple[Publisher, Any], elsewhere: Publisher
) -> None:
    published, trust = secured
    published.answers["/old"] = moved(f"{elsewhere.url}/new")
    names = Names({"open.example": ["127.0.0.1"]})
    allow = [f"127.0.0.1:{elsewhere.port}"]
    async with Outbound(allow, resolve=names, tls=trust) as outbound:
        with pytest.raises(FetchFailed, match="redirects from https:// to http://"):
            await outbound.fetch(f"https://open.example:{published.port}/old", FOLLOWING)
    assert elsewhere.seen == []


@pytest.mark.parametrize("address_policy", list(AddressPolicy))
async def test_credentials_stay_with_their_origin(
    address_policy: AddressPolicy, published: Publisher, elsewhere: Publisher
) -> None:
    published.answers["/old"] = moved(f"{elsewhere.url}/new")
    elsewhere.answers["/new"] = Answer({})
    allow = [f"127.0.0.1:{one.port}" for one in (published, elsewhere)]
    headers = {**SECRETS, "Accept": "text/plain"}
    async with Outbound(allow) as outbound:
        await outbound.fetch(
            f"{published.url}/old", FOLLOWING, address_policy=address_policy, headers=headers
        )
    assert published.seen[0].headers["authorization"] == "Bearer secret"
    assert set(elsewhere.seen[0].headers) == {"host", "user-agent", "accept", "accept-encoding"}
    assert "secret" not in str(elsewhere.seen[0].headers)


async def test_a_way_back_does_not_bring_the_credentials_back(
    published: Publisher, elsewhere: Publisher
) -> None:
    published.answers["/old"] = moved(f"{elsewhere.url}/there")
    elsewhere.answers["/there"] = moved(f"{published.url}/back")
    published.answers["/back"] = Answer({})
    async with Outbound([f"127.0.0.1:{one.port}" for one in (published, elsewhere)]) as outbound:
        await outbound.fetch(f"{published.url}/old", FOLLOWING, headers=SECRETS)
    assert "authorization" not in published.seen[1].headers


async def test_a_loop_ends(published: Publisher) -> None:
    published.answers["/a"] = moved("/b")
    published.answers["/b"] = moved("/a")
    async with Outbound([f"127.0.0.1:{published.port}"]) as outbound:
        with pytest.raises(FetchFailed, match=r"^127\.0\.0\.1 is behind more than 3 redirects\.$"):
            await outbound.fetch(f"{published.url}/a", FOLLOWING)
    assert len(published.seen) == 4


async def test_a_form_is_not_sent_on(published: Publisher, elsewhere: Publisher) -> None:
    published.answers["/old"] = moved(f"{elsewhere.url}/new", 307)
    async with Outbound() as outbound:
        with pytest.raises(FetchFailed, match="redirects are not followed"):
            await outbound.fetch(
                f"{published.url}/old",
                FOLLOWING,
                address_policy=AddressPolicy.DIRECT,
                method="POST",
                content=b"client_secret=secret",
            )
    assert elsewhere.seen == []


async def test_a_redirect_without_an_address_is_a_response(published: Publisher) -> None:
    published.answers["/old"] = Answer({}, 302)
    limits = patient(redirects=3, statuses=None)
    async with Outbound() as outbound:
        fetched = await outbound.fetch(
            f"{published.url}/old", limits, address_policy=AddressPolicy.DIRECT
        )
    assert fetched.status == 302

"""Signing in on an app's own site: running servers, the official client, real ID tokens."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

import httpx2
import pytest
from tests.clients.python_oauth import REDIRECT, USER_TOOLS, Person, connected, revoke, tools_of
from tests.identity.oauth.flow import PREFIX, Flow, query_of, registered
from tests.identity.pages import browsing, walk
from tests.identity.providers.tokens import changed, jwk_set, now, rsa, signed, unsigned
from tests.identity.publisher import Answer, Seen, publishing
from tests.identity.records import grants_of, record_of
from tests.servers import Server, running_server

pytestmark = pytest.mark.anyio

PROJECT = "demo-app"
KEY, FOREIGN = rsa("site-1"), rsa("site-1")


def claims(uid: str = "fire1", **other: Any) -> dict[str, Any]:
    """What Firebase says of a person who just signed in."""
    return {
        "iss": f"https://securetoken.google.com/{PROJECT}",
        "aud": PROJECT,
        "sub": uid,
        "iat": now(-5),
        "exp": now(3600),
        "auth_time": now(-10),
        "email": f"{uid}@example.com",
        "email_verified": True,
        **other,
    }


@dataclass
class Site:
    """An app's site, whose sign-in page sends the browser back with `token`."""

    url: str = ""
    token: Callable[[], str] = lambda: signed(KEY, claims())

    def page(self, seen: Seen) -> Answer:
        asked = dict(parse_qsl(seen.query))
        assert asked["mcp"] == "true"
        back = {"code": self.token(), "state": asked["state"]}
        return Answer("", 302, {"Location": f"{asked['redirect_uri']}?{urlencode(back)}"})


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with publishing() as publisher:
        made = Site(publisher.url)
        publisher.answers["/token"] = lambda seen: made.page(seen)
        publisher.answers["/keys"] = Answer(jwk_set(KEY))
        yield made


@pytest.fixture(scope="module")
def gate(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    settings = {
        "sign_in__provider": "site",
        "sign_in__site_url": f"{site.url}/token",
        "sign_in__firebase_project": PROJECT,
        "sign_in__firebase_keys_url": f"{site.url}/keys",
    }
    with running_server(tmp_path_factory, **settings) as started:
        yield started


@pytest.fixture
async def flow(gate: Server) -> AsyncIterator[Flow]:
    async with httpx2.AsyncClient(base_url=gate.url, trust_env=False) as http:
        yield await registered(http, REDIRECT)


async def test_the_python_client_goes_the_whole_way(gate: Server, site: Site) -> None:
    site.token = lambda: signed(KEY, claims("fire1"))
    person = Person({})
    async with connected(gate, person) as (client, _):
        assert await tools_of(client) == USER_TOOLS
        told = (await client.call_tool("get_user", {})).structured_content
    assert told is not None
    assert told["user"]["auth"]["uid"] == "fire1"
    assert told["user"]["auth"]["email"] == "fire1@example.com"
    made = record_of(gate, "fire1")
    assert made is not None

    await revoke(gate, person)
    async with connected(gate, person) as (client, _):
        assert await tools_of(client) == USER_TOOLS
    assert (person.sign_ins, record_of(gate, "fire1")) == (2, made)


BAD: dict[str, tuple[Callable[[], str], str]] = {
    "expired": (
        lambda: signed(KEY, claims("bad", iat=now(-7200), exp=now(-3600))),
        "The ID token has expired.",
    ),
    "foreign-project": (
        lambda: signed(KEY, claims("bad", aud="other-app")),
        "The ID token is not valid.",
    ),
    "foreign-issuer": (
        lambda: signed(KEY, claims("bad", iss="https://securetoken.google.com/other-app")),
        "The ID token is not valid.",
    ),
    "foreign-key": (lambda: signed(FOREIGN, claims("bad")), "The ID token is not valid."),
    "alg-none": (lambda: unsigned(claims("bad"), kid="site-1"), "The ID token is not valid."),
    "tampered": (
        lambda: changed(signed(KEY, claims("good")), sub="bad"),
        "The ID token is not valid.",
    ),
    "number-for-a-name": (lambda: signed(KEY, claims("bad", sub=7)), "The ID token"),
    "half-a-character": (
        lambda: signed(KEY, claims("bad", sub="bad\ud800")),
        "Your account has an id that cannot be used here.",
    ),
    "nothing": (lambda: "", "The site sent no ID token."),
}


@pytest.mark.parametrize("case", BAD)
async def test_a_bad_token_is_refused_on_a_page(
    gate: Server, site: Site, flow: Flow, case: str
) -> None:
    site.token, told = BAD[case]
    async with browsing(f"site-{case}") as browser:
        asked = httpx2.QueryParams(flow.question())
        page = await walk(browser, f"{gate.url}{PREFIX}/authorize?{asked}", REDIRECT, {})
    assert page.status_code == 403, page.text
    assert told in page.text
    assert page.headers["content-type"].startswith("text/html")
    [row] = gate.audit_rows(f"site-{case}")
    assert (row["rule"], row["decision"]) == ("oauth-sign-in-failed", "deny")
    assert (grants_of(gate, "bad"), record_of(gate, "bad")) == (0, None)


async def test_a_name_that_no_text_can_have_does_not_matter(
    gate: Server, site: Site, flow: Flow
) -> None:
    """The profile is what its owner typed elsewhere; a page and a record must still be made."""
    site.token = lambda: signed(KEY, claims("odd", name="O\ud800dd\0\n", email="o\ud800@x.example"))
    async with browsing("site-odd") as browser:
        asked = httpx2.QueryParams(flow.question())
        url = f"{gate.url}{PREFIX}/authorize?{asked}"
        sent = await walk(browser, url, REDIRECT, {"decision": "allow"})
    assert "code" in query_of(sent)
    made = record_of(gate, "odd")
    assert made is not None
    assert made["personal"]["name"] == {"first": "O?dd??", "last": None}
    assert made["auth"]["email"] is None

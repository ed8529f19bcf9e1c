"""Signing in at npm `oidc-provider`: running servers, the official clients, the real pages."""

import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from tests.clients.python_oauth import (
    REDIRECT,
    USER_TOOLS,
    Person,
    connected,
    revoke,
    tools_of,
)
from tests.conformance.node import NodeUnavailable, find, install
from tests.identity.oauth.flow import PREFIX, Flow, query_of, registered
from tests.identity.oidc.provider import running
from tests.identity.pages import browsing, walk
from tests.identity.publisher import publishing
from tests.identity.records import grants_of, record_of, set_admin
from tests.patience import PATIENT
from tests.servers import Server, running_server

pytestmark = pytest.mark.anyio

CLIENTS = Path(__file__).parents[1] / "clients"
TS_SCRIPT = "ts_oauth.mjs"


def settings(issuer: str) -> dict[str, Any]:
    return {
        "sign_in__provider": "oidc",
        "sign_in__oidc_issuer": issuer,
        "sign_in__oidc_client_id": "toolgate",
        "sign_in__oidc_client_secret": "only for tests",
    }


@pytest.fixture(scope="module")
def gate(issuer: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory, **settings(issuer)) as started:
        yield started


@asynccontextmanager
async def opened_flow(gate: Server) -> AsyncGenerator[Flow, None]:
    async with httpx2.AsyncClient(base_url=gate.url, trust_env=False) as http:
        yield await registered(http, REDIRECT)


@pytest.fixture
async def flow(gate: Server) -> AsyncIterator[Flow]:
    async with opened_flow(gate) as opened:
        yield opened


def typed(who: str) -> dict[str, str]:
    return {"login": who, "password": "any"}


def address(flow: Flow) -> str:
    """Where the client sends the browser."""
    asked = httpx2.QueryParams(flow.question())
    return str(flow.http.base_url.join(f"{PREFIX}/authorize")) + f"?{asked}"


async def shortly(happened: Callable[[], Awaitable[bool]], what: str) -> None:
    """Look again until it is so."""
    deadline = time.monotonic() + PATIENT
    while not await happened():
        assert time.monotonic() < deadline, what
        await anyio.sleep(0.05)


@pytest.mark.parametrize("path", ["/mcp", "/backend-manager/mcp"])
async def test_the_python_client_goes_the_whole_way(gate: Server, path: str) -> None:
    who = f"jane{path.count('/')}"
    person = Person(typed(who))
    assert record_of(gate, who) is None
    async with connected(gate, person, path) as (client, provider):
        assert await tools_of(client) == USER_TOOLS
        told = (await client.call_tool("get_user", {})).structured_content
        assert told is not None
        assert told["user"]["auth"]["uid"] == who
        assert told["user"]["auth"]["email"] == f"{who}@example.com"
        assert told["user"]["roles"]["admin"] is False
        assert (person.sign_ins, len(person.tokens)) == (1, 1)

        provider.context.token_expiry_time = time.time() - 1
        assert await tools_of(client) == USER_TOOLS
        assert (person.sign_ins, len(person.tokens)) == (1, 2), "refreshed without the person"

    made = record_of(gate, who)
    assert made is not None
    assert made["auth"] == {"uid": who, "email": f"{who}@example.com", "temporary": False}
    await revoke(gate, person)
    async with connected(gate, person, path) as (client, _):
        assert await tools_of(client) == USER_TOOLS
    assert person.sign_ins == 2, "after the revocation the person has to sign in again"
    assert record_of(gate, who) == made, "the second sign-in leaves the record alone"


def test_the_typescript_client_goes_the_whole_way(gate: Server) -> None:
    try:
        home = install(CLIENTS, TS_SCRIPT)
    except NodeUnavailable as reason:
        pytest.skip(f"TypeScript client: {reason}")
    types = {"TOOLGATE_TYPED": json.dumps(typed("tess"))}
    done = find().run(TS_SCRIPT, f"{gate.url}/mcp", cwd=home, timeout=PATIENT, env=types)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "tools": USER_TOOLS,
        "signIns": 1,
        "tokens": 1,
        "afterRefresh": True,
        "revoked": 200,
        "again": 2,
    }
    assert record_of(gate, "tess") is not None


async def test_a_record_that_says_admin_makes_one_everywhere(gate: Server) -> None:
    person = Person(typed("rose"))
    with gate.client("admin") as admin:
        every = [tool["name"] for tool in admin.get("/v1/tools").json()["tools"]]
    async with connected(gate, person) as (client, _):
        assert await tools_of(client) == USER_TOOLS
        bearer = {"Authorization": f"Bearer {person.access_token}"}
        async with httpx2.AsyncClient(base_url=gate.url, headers=bearer, trust_env=False) as http:

            async def sees(wanted: list[str]) -> bool:
                listed = (await http.get("/v1/tools")).json()["tools"]
                return [tool["name"] for tool in listed] == wanted

            uuid = f"{PREFIX.removesuffix('/mcp')}/general/uuid"
            assert await sees(USER_TOOLS)
            refused = await http.post(uuid, json={"version": "4"})
            assert refused.status_code == 404, "as if there were no such route"

            set_admin(gate, "rose", value=True)
            await shortly(lambda: sees(every), "the record makes an admin within a second")
            assert await tools_of(client) == every
            assert (await client.call_tool("generate_uuid", {"version": "4"})).is_error is False
            made = await http.post(uuid, json={"version": "4"})
            assert (made.status_code, len(made.json()["uuid"])) == (200, 36)

            set_admin(gate, "rose", value=False)
            await shortly(lambda: sees(USER_TOOLS), "and no longer makes one within a second")
            assert await tools_of(client) == USER_TOOLS
            again = await http.post(uuid, json={"version": "4"})
            assert (again.status_code, again.content) == (refused.status_code, refused.content)
    assert (person.sign_ins, len(person.tokens)) == (1, 1), "it was the same token all the time"


async def test_an_id_with_a_bar_is_an_id_like_any_other(gate: Server) -> None:
    """Some providers write `auth0|123`."""
    person = Person(typed("auth0|123"))
    async with connected(gate, person) as (client, _):
        told = (await client.call_tool("get_user", {})).structured_content
    assert told is not None
    assert told["user"]["auth"]["uid"] == "auth0|123"
    assert record_of(gate, "auth0|123") is not None


@pytest.mark.parametrize("who", ["a/b", "..", "__x__"])
async def test_an_id_that_no_record_can_have_is_refused_plainly(
    gate: Server, flow: Flow, who: str
) -> None:
    async with browsing(f"id-{who.strip('./_')}") as browser:
        page = await walk(browser, address(flow), REDIRECT, typed(who))
    assert page.status_code == 403
    assert "Your account has an id that cannot be used here." in page.text
    [row] = gate.audit_rows(f"id-{who.strip('./_')}")
    assert row["rule"] == "oauth-sign-in-failed"
    assert grants_of(gate, who) == 0


async def test_a_refusal_at_the_provider_is_a_plain_page(gate: Server, flow: Flow) -> None:
    before = grants_of(gate)
    async with browsing("upstream-refused") as browser:
        page = await walk(browser, address(flow), REDIRECT, {})
        assert page.status_code == 403
        assert "The sign-in was refused or cancelled at the provider." in page.text
        assert page.headers["content-type"].startswith("text/html")
        [row] = gate.audit_rows("upstream-refused")
        assert (row["rule"], row["decision"]) == ("oauth-sign-in-failed", "deny")
        assert grants_of(gate) == before
        assert (await browser.get(page.url)).status_code == 403, "it has to begin again"


async def test_an_answer_is_of_use_only_in_the_browser_that_asked(gate: Server, flow: Flow) -> None:
    """Else an attacker could have a victim go on with the attacker's account."""
    callback = f"{gate.url}{PREFIX}/callback"
    async with browsing("mallory") as attacker, browsing("victim") as victim:
        of_attacker = await walk(attacker, address(flow), callback, typed("mallory"))
        of_victim = await walk(victim, address(flow), callback, typed("vera"))

        page = await victim.get(of_attacker.headers["location"])
        assert page.status_code == 403
        assert "begun in another browser" in page.text
        assert gate.audit_rows("victim")[0]["rule"] == "oauth-other-browser"

        mixed = query_of(of_victim) | {"code": query_of(of_attacker)["code"]}
        page = await victim.get(callback, params=mixed)
        assert page.status_code == 403
        assert "did not accept the code" in page.text
        assert gate.audit_rows("victim", count=2)[1]["rule"] == "oauth-sign-in-failed"
    assert (grants_of(gate, "mallory"), grants_of(gate, "vera")) == (0, 0)
    assert record_of(gate, "mallory") is None


async def test_a_provider_that_is_down_is_a_plain_page(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with publishing() as gone:
        nobody = gone.url
    with running_server(tmp_path_factory, **settings(nobody)) as gate:
        async with opened_flow(gate) as flow, browsing("down") as browser:
            page = await walk(browser, address(flow), REDIRECT, typed("jane"))
        assert page.status_code == 502
        assert "The provider cannot be used now" in page.text
        assert gate.audit_rows("down")[0]["rule"] == "oauth-sign-in-failed"


@pytest.mark.usefixtures("issuer")
async def test_a_provider_that_goes_down_meanwhile_is_a_plain_page(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with ExitStack() as provider:
        issuer = provider.enter_context(running())
        with running_server(tmp_path_factory, **settings(issuer)) as gate:
            callback = f"{gate.url}{PREFIX}/callback"
            async with opened_flow(gate) as flow, browsing("went-down") as browser:
                sent = await walk(browser, address(flow), callback, typed("jane"))
                provider.close()
                page = await browser.get(sent.headers["location"])
            assert page.status_code == 502
            assert "The provider cannot be used now" in page.text
            assert gate.audit_rows("went-down")[0]["rule"] == "oauth-sign-in-failed"
            assert (grants_of(gate), record_of(gate, "jane")) == (0, None)

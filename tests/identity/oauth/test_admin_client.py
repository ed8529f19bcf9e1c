"""An admin key as client id: on loopback or by setting, with PKCE and a code that works once."""

import json
import sqlite3
from pathlib import Path

import httpx2
import pytest
from tests.identity.oauth.flow import PREFIX, REDIRECT, Flow, query_of
from tests.transports.conftest import ADMIN_KEY, Web, opened_web

from toolgate.gate.principal import Role

pytestmark = pytest.mark.anyio

ELSEWHERE = "tools.example.com"


def stored(web: Web) -> bytes:
    """All that is kept, with what is not yet in the main file."""
    folder = web.kit.app.settings.data
    with sqlite3.connect(folder / "toolgate.db") as connection:
        connection.execute("PRAGMA wal_checkpoint(FULL)")
    return b"".join(file.read_bytes() for file in folder.iterdir() if file.is_file())


async def test_it_is_answered_at_once_and_the_token_is_an_admins(
    web: Web, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    async with web.client(None) as http:
        flow = Flow(http, ADMIN_KEY)
        headers = {"X-Request-Id": "admin-client"}
        sent = await flow.authorize(headers)
        assert sent.status_code == 303
        told = query_of(sent)
        assert (told["state"], told["iss"]) == ("s t&a=te", "http://127.0.0.1")
        answer = await flow.exchange(told["code"], headers)
        assert answer.status_code == 200, answer.text
        tokens = answer.json()
        listed = await flow.tools(tokens["access_token"])
        admins = await http.get("/v1/tools", headers={"Authorization": f"Bearer {ADMIN_KEY}"})
        assert listed.json() == admins.json()
        again = await flow.refresh(tokens["refresh_token"])
        assert again.status_code == 200, again.text
        assert (await flow.exchange(told["code"])).status_code == 400, "a code works once"
        ended = await flow.tools(again.json()["access_token"])
        assert ended.status_code == 401, "and used twice, it ends what came of it"
        rows = await web.audit_rows("admin-client")
    assert {row["rule"] for row in rows} == {"oauth-granted", "oauth-token-issued"}
    assert {row["subject_id"] for row in rows} == {"admin-key"}
    # Not what the client of this test logs of itself.
    logged = [one.getMessage() for one in caplog.records if not one.name.startswith("httpx")]
    told_anywhere = str(logged) + json.dumps(rows) + sent.text + sent.headers["location"]
    assert ADMIN_KEY not in told_anywhere
    assert ADMIN_KEY.encode() not in stored(web)


async def test_a_key_made_here_for_an_admin_does_as_well(web: Web) -> None:
    made = await web.kit.app.keys.create(role=Role.ADMIN)
    async with web.client(None) as http:
        flow = Flow(http, made.key)
        tokens = (await flow.exchange(query_of(await flow.authorize())["code"])).json()
        assert (await flow.tools(tokens["access_token"])).status_code == 200
        given_back = {"token": tokens["refresh_token"], "client_id": made.key}
        assert (await http.post(f"{PREFIX}/revoke", data=given_back)).status_code == 200
        web.kit.app.credentials.forget()
        assert (await flow.tools(tokens["access_token"])).status_code == 401
    assert made.key.encode() not in stored(web)


async def test_pkce_is_required(web: Web) -> None:
    async with web.client(None) as http:
        flow = Flow(http, ADMIN_KEY)
        without = await flow.authorize(code_challenge=None)
        assert query_of(without)["error"] == "invalid_request"
        code = query_of(await flow.authorize())["code"]
        assert (await flow.exchange(code, code_verifier="x" * 43)).status_code == 400
        assert (await flow.exchange(code, client_id="admin-key")).json()["error"] == (
            "invalid_client"
        ), "the name under which the grant is kept is no client id"
        assert (await flow.authorize(redirect_uri="http://evil.example/")).status_code == 400


async def test_a_users_key_is_no_client_id(web: Web) -> None:
    async with web.client(None) as http:
        answer = await Flow(http, web.keys["user"]).authorize()
    assert answer.status_code == 400


@pytest.mark.parametrize(("host", "peer"), [(ELSEWHERE, "127.0.0.1"), ("127.0.0.1", "203.0.113.5")])
async def test_elsewhere_the_page_says_how_to_sign_in_and_not_whether_the_key_is_right(
    tmp_path: Path, host: str, peer: str
) -> None:
    settings = {"server__allowed_hosts": ("127.0.0.1", ELSEWHERE)}
    async with opened_web(tmp_path, **settings) as web:
        transport = httpx2.ASGITransport(web.app, client=(peer, 1))
        async with httpx2.AsyncClient(transport=transport, base_url=f"http://{host}") as http:
            right = await Flow(http, ADMIN_KEY).authorize()
            wrong = await Flow(http, "x" * 32).authorize()
            unknown = await Flow(http, "mcp_" + "0" * 32).authorize()
            token = await Flow(http, ADMIN_KEY).exchange("tgc_x")
    assert (right.status_code, right.text) == (400, wrong.text)
    assert right.text == unknown.text
    assert "client ID left empty" in right.text
    assert token.json()["error"] == "invalid_client"


async def test_the_setting_allows_it_from_everywhere(tmp_path: Path) -> None:
    settings = {"server__allowed_hosts": (ELSEWHERE,), "oauth__admin_key_client": True}
    async with opened_web(tmp_path, **settings) as web, web.client(None, ELSEWHERE) as http:
        sent = await Flow(http, ADMIN_KEY).authorize()
    assert sent.headers["location"].startswith(f"{REDIRECT}?code=tgc_")


@pytest.mark.parametrize(
    "header",
    [
        {"X-Forwarded-For": "203.0.113.5"},
        {"X-Forwarded-For": "unknown"},
        {"X-Forwarded-For": "::5"},
        {"X-Forwarded-Proto": "http"},
        {"X-Real-IP": "127.0.0.1"},
        {"Forwarded": "for=203.0.113.5"},
        {"Via": "1.1 proxy"},
    ],
)
@pytest.mark.parametrize("proxies", [(), ("127.0.0.1",)])
async def test_what_passed_a_proxy_on_this_machine_is_not_local(
    tmp_path: Path, header: dict[str, str], proxies: tuple[str, ...]
) -> None:
    settings = {"server__trusted_proxies": proxies}
    async with opened_web(tmp_path, **settings) as web, web.client(None) as http:
        assert (await Flow(http, ADMIN_KEY).authorize(header)).status_code == 400
        answer = await Flow(http, ADMIN_KEY).exchange("tgc_x", header)
    assert answer.json()["error"] == "invalid_client"


async def test_a_trusted_proxy_is_not_local_whatever_it_says(tmp_path: Path) -> None:
    settings = {"server__trusted_proxies": ("127.0.0.1",)}
    async with opened_web(tmp_path, **settings) as web, web.client(None) as http:
        assert (await Flow(http, ADMIN_KEY).authorize()).status_code == 400


@pytest.mark.parametrize(
    ("peer", "status"), [("::1", 303), ("127.8.8.8", 303), ("::5", 400), ("::ffff:127.0.0.1", 303)]
)
async def test_only_loopback_itself_is_local(tmp_path: Path, peer: str, status: int) -> None:
    async with opened_web(tmp_path) as web:
        transport = httpx2.ASGITransport(web.app, client=(peer, 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            assert (await Flow(http, ADMIN_KEY).authorize()).status_code == status


@pytest.mark.parametrize("everywhere", [False, True])
@pytest.mark.parametrize(
    ("redirect", "told"),
    [
        (None, "The application did not say where its answer goes (redirect_uri)."),
        ("http://127.0.0.1/#x", "redirect_uri must not have a fragment."),
    ],
)
async def test_what_is_wrong_with_the_redirect_is_said_as_it_is(
    tmp_path: Path, redirect: str | None, told: str, *, everywhere: bool
) -> None:
    settings = {"oauth__admin_key_client": everywhere or redirect is not None}
    async with opened_web(tmp_path, **settings) as web, web.client(None) as http:
        page = await Flow(http, ADMIN_KEY).authorize(redirect_uri=redirect)
    assert page.status_code == 400
    assert told in page.text
    assert "register" not in page.text


@pytest.mark.parametrize(("everywhere", "status"), [(False, 400), (True, 303)])
async def test_the_answer_goes_to_this_machine_unless_the_setting_allows_more(
    tmp_path: Path, *, everywhere: bool, status: int
) -> None:
    settings = {"oauth__admin_key_client": everywhere}
    async with opened_web(tmp_path, **settings) as web, web.client(None) as http:
        sent = await Flow(http, ADMIN_KEY, "https://app.example/cb").authorize()
    assert sent.status_code == status


async def test_guesses_are_counted_wherever_they_are_tried(tmp_path: Path) -> None:
    settings = {"limits__guesses_per_minute": 20}
    async with opened_web(tmp_path, **settings) as web, web.client(None) as http:
        wrong = [f"as-long-as-a-key-{number:02}" for number in range(20)]
        guesses = [(await Flow(http, one).authorize()).status_code for one in wrong[:10]]
        tokens = [(await Flow(http, one).exchange("x")).status_code for one in wrong[10:]]
        late = await Flow(http, ADMIN_KEY).authorize()
    assert set(guesses + tokens) == {400}
    assert late.status_code == 429

"""What one stranger can do to signing in: use up what is theirs, and nothing of the others'."""

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from sqlalchemy import func, insert, select, text
from tests.identity.oauth.flow import PREFIX, REDIRECT, Flow, hidden, registered
from tests.patience import PATIENT
from tests.transports.conftest import ADMIN_KEY, Web, opened_web

from toolgate.db.oauth_tables import clients, sign_ins
from toolgate.gate.audit_records import timestamp
from toolgate.identity.guesses import PURPOSE
from toolgate.identity.oauth import clients as clients_module
from toolgate.identity.oauth import sign_ins as sign_ins_module
from toolgate.ports.documents import StoreUnavailable

pytestmark = pytest.mark.anyio

STRANGER, PERSON = "203.0.113.66", "198.51.100.7"


@asynccontextmanager
async def browser(web: Web, peer: str) -> AsyncGenerator[httpx2.AsyncClient]:
    """Somebody at an address of their own."""
    transport = httpx2.ASGITransport(web.app, client=(peer, 50000))
    async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
        yield http


async def many(web: Web, table: Any) -> int:
    counted = select(func.count()).select_from(table)
    return await web.kit.app.gate.database.read(lambda c: c.execute(counted).scalar_one())


async def statuses(http: httpx2.AsyncClient, times: int, path: str, **form: str) -> list[int]:
    return [(await http.post(path, data=form)).status_code for _ in range(times)]


# Counted by peer ------------------------------------------------------------------------------


@pytest.mark.parametrize("calls_per_minute", [600, 0])
async def test_one_stranger_does_not_shut_sign_in(tmp_path: Path, calls_per_minute: int) -> None:
    """Neither with its limits on, nor with those of callers switched off."""
    settings = {"limits__calls_per_minute": calls_per_minute}
    async with opened_web(tmp_path, **settings) as web:
        async with browser(web, STRANGER) as http:
            told = {"redirect_uris": [REDIRECT]}
            codes = [(await http.post("/register", json=told)).status_code for _ in range(70)]
            begun = [(await http.get("/authorize")).status_code for _ in range(70)]
        assert (codes.count(201), codes.count(429)) == (60, 10)
        assert (begun.count(400), begun.count(429)) == (60, 10)
        async with browser(web, PERSON) as http:
            flow = await registered(http)
            assert (await flow.tokens(ADMIN_KEY))["token_type"] == "Bearer"


async def test_too_many_of_one_peer_are_told_on_a_page_when_to_come_back(tmp_path: Path) -> None:
    settings = {"limits__sign_ins_per_minute": 1}
    async with opened_web(tmp_path, **settings) as web, browser(web, STRANGER) as http:
        await http.get("/authorize")
        late = await http.get("/authorize?%ff")
    assert late.status_code == 429
    assert int(late.headers["retry-after"]) > 0
    assert "What to do now" in late.text


@pytest.mark.parametrize("path", ["/authorize", "/register"])
async def test_a_request_past_the_limit_is_audited(tmp_path: Path, path: str) -> None:
    settings = {"limits__sign_ins_per_minute": 1}
    async with opened_web(tmp_path, **settings) as web, browser(web, STRANGER) as http:
        for number in range(2):
            named = {"X-Request-Id": f"begun-{number}"}
            method = "GET" if path == "/authorize" else "POST"
            last = await http.request(method, path, headers=named)
        assert last.status_code == 429
        [row] = await web.audit_rows("begun-1")
    assert (row["rule"], row["error_type"]) == ("oauth-limit", "rate_limited")
    assert row["subject_id"] == f"peer:{STRANGER}"


async def test_that_sign_in_was_not_possible_is_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_: Any) -> None:
        raise StoreUnavailable("away")

    async with opened_web(tmp_path) as web, browser(web, STRANGER) as http:
        monkeypatch.setattr(web.kit.app.gate.limits.peers, "admit", fails)
        answer = await http.get("/authorize", headers={"X-Request-Id": "away"})
        [row] = await web.audit_rows("away")
    assert answer.status_code == 503
    assert (row["rule"], row["error_type"]) == ("oauth-unavailable", "unavailable")


async def test_token_and_revoke_are_counted_too(tmp_path: Path) -> None:
    settings = {"limits__sign_ins_per_minute": 1}
    async with opened_web(tmp_path, **settings) as web:
        async with browser(web, STRANGER) as http:
            for path in (f"{PREFIX}/token", f"{PREFIX}/revoke"):
                assert (await statuses(http, 11, path))[-2:] == [400, 429]
            assert await statuses(http, 1, "/token") == [429], "under its other name as well"
        async with browser(web, PERSON) as http:
            assert await statuses(http, 1, "/token") == [400]


async def test_a_sign_in_ends_after_five_wrong_keys(tmp_path: Path) -> None:
    async with opened_web(tmp_path) as web, web.client(None) as http:
        answer = await (await registered(http)).sign_in("wrong")
        for _ in range(4):
            answer = await http.post(f"{PREFIX}/sign-in", data={**hidden(answer), "key": "wrong"})
        right = {**hidden(answer), "key": ADMIN_KEY}
        over = await http.post(f"{PREFIX}/sign-in", data=right, headers={"X-Request-Id": "guesses"})
        [row] = await web.audit_rows("guesses")
    assert (over.status_code, row["rule"]) == (403, "oauth-other-browser")


@pytest.mark.parametrize(
    "fetched",
    [
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    ],
)
async def test_pictures_and_frames_of_foreign_pages_use_up_nothing(
    tmp_path: Path, fetched: dict[str, str]
) -> None:
    """Any web page can have a browser ask for them, also of a server on its own machine."""
    limits = {"limits__guesses_per_minute": 3, "limits__sign_ins_per_minute": 3}
    async with opened_web(tmp_path, **limits) as web, web.client(None) as http:
        for number in range(10):
            answer = await Flow(http, f"wrong-{number}").authorize(fetched)
            assert answer.status_code == 403
        flow = await registered(http)
        opened = {**fetched, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        assert (await flow.authorize(opened)).status_code == 303, "a client opens the page"
        assert (await flow.tokens(ADMIN_KEY))["token_type"] == "Bearer"


async def test_guessing_is_limited_and_shuts_nobody_else_out(tmp_path: Path) -> None:
    async with opened_web(tmp_path, limits__guesses_per_minute=20) as web:

        async def answer(peer: str, key: str) -> int:
            async with browser(web, peer) as http:
                return (await (await registered(http)).sign_in(key)).status_code

        for number in range(20):
            assert await answer("2001:db8::1", f"wrong-{number}") == 403
        assert await answer("2001:db8::2", ADMIN_KEY) == 429, "the same network"
        assert await answer("2001:db8:0:1::1", ADMIN_KEY) == 303
        assert await answer("203.0.113.9", ADMIN_KEY) == 303


async def test_guesses_from_many_places_shut_nobody_out(tmp_path: Path) -> None:
    """A thousand wrong ones a minute, from everywhere, used to be the end for all."""
    async with opened_web(tmp_path) as web:
        peers = web.kit.app.gate.limits.peers
        for number in range(2000):
            await peers.admit(PURPOSE, f"198.18.{number // 250}.{number % 250}", 20)
        async with browser(web, PERSON) as http:
            answered = await (await registered(http)).sign_in(ADMIN_KEY)
    assert answered.status_code == 303


# Registrations --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "status"),
    [
        ({"redirect_uris": [REDIRECT], "client_name": "x" * 9000}, 413),
        ({"redirect_uris": ["https://a.example/" + "x" * 500]}, 400),
        ({"redirect_uris": [f"https://a.example/{n}" for n in range(11)]}, 400),
        ({"redirect_uris": ["https://a.example/" + "x" * 490], "junk": ["y"] * 500}, 201),
    ],
)
async def test_a_registration_is_bounded(tmp_path: Path, told: Any, status: int) -> None:
    async with opened_web(tmp_path) as web, web.client(None) as http:
        answer = await http.post("/register", json=told)
    assert answer.status_code == status, answer.text


async def test_registrations_that_were_never_used_make_room_and_used_ones_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients_module, "MAX_NEVER_USED", 5)
    async with opened_web(tmp_path) as web, web.client(None) as http:
        used = await registered(http)
        await used.tokens(ADMIN_KEY)
        flows = [await registered(http) for _ in range(12)]
        kept = [flow for flow in flows if (await flow.authorize()).status_code == 303]
        assert kept == flows[-5:], "the newest"
        assert (await used.authorize()).status_code == 303
        assert await many(web, clients) == 6


async def test_a_registration_without_use_ends_after_a_day_and_a_used_one_does_not(
    tmp_path: Path,
) -> None:
    async with opened_web(tmp_path) as web, web.client(None) as http:
        never, used = await registered(http), await registered(http)
        await used.tokens(ADMIN_KEY)
        ends = select(clients.c.id, clients.c.expires_at)
        found = await web.kit.app.gate.database.read(lambda c: dict(c.execute(ends).all()))
    assert found[never.client_id] <= timestamp(seconds=86400)
    assert found[used.client_id] > timestamp(seconds=100 * 86400)


async def test_sign_ins_on_their_way_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_ins_module, "MAX_AT_ONCE", 3)
    async with opened_web(tmp_path) as web, web.client(None) as http:
        flow = await registered(http)
        for _ in range(6):
            await flow.authorize()
        assert await many(web, sign_ins) == 3


# The write lock -------------------------------------------------------------------------------


async def test_what_cannot_succeed_does_not_wait_for_the_write_lock(tmp_path: Path) -> None:
    async with opened_web(tmp_path) as web, web.client(None) as http:
        flow = await registered(http)
        tokens = await flow.tokens(ADMIN_KEY)
        await http.post(f"{PREFIX}/revoke", data={"token": tokens["refresh_token"]})
        wrong = f"{secrets.token_hex(16)}_{secrets.token_hex(32)}"
        # Somebody writes, for as long as all of this takes.
        async with web.kit.app.gate.database.transaction() as writing:
            await writing.run(lambda c: c.execute(text("SELECT 1")))
            with anyio.fail_after(PATIENT):
                answers = [
                    await flow.exchange(f"tgc_{wrong}"),
                    await flow.refresh(f"tgr_{wrong}"),
                    await flow.refresh(tokens["refresh_token"]),
                    await http.post(f"{PREFIX}/revoke", data={"token": f"tga_{wrong}"}),
                ]
    assert [answer.status_code for answer in answers] == [400, 400, 400, 200]


# Data of before -------------------------------------------------------------------------------


async def test_a_client_without_a_date_of_use_can_still_sign_people_in(tmp_path: Path) -> None:
    """As registrations look that were made before there was such a date."""
    row = {
        "id": "mcp_older",
        "name": "Older",
        "redirect_uris": [REDIRECT],
        "created_at": timestamp(),
        "expires_at": timestamp(seconds=86400),
    }
    async with opened_web(tmp_path) as web, web.client(None) as http:
        await web.kit.app.gate.database.write(lambda c: c.execute(insert(clients), [row]))
        tokens = await Flow(http, "mcp_older").tokens(ADMIN_KEY)
    assert tokens["scope"] == "tools"

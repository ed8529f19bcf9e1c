"""Refusals and guesses are counted: past a limit 429, and one audit row for many."""

import time
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.transports.conftest import ADMIN_KEY, Web, opened_web

from toolgate.gate import summaries
from toolgate.gate.errors import Unavailable
from toolgate.gate.principal import Role

pytestmark = pytest.mark.anyio

START = 1_800_000_000.0  # the beginning of a minute
LIMITS = {"limits__refusals_per_minute": 60, "limits__guesses_per_minute": 20}
PATHS = ("/v1/tools", "/mcp", "/rpc")


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [START]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def unknown(many: int) -> list[dict[str, Any]]:
    return [{"jsonrpc": "2.0", "id": one, "method": "nothing"} for one in range(many)]


async def rows(web: Web) -> list[dict[str, Any]]:
    return await web.kit.audit_rows()


def client(web: Web, peer: str, **headers: str) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(web.app, client=(peer, 5000))
    return httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers)


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


# Refusals -------------------------------------------------------------------------------------


async def test_batches_of_unknown_methods_are_limited_and_leave_few_rows(
    tmp_path: Path, clock: list[float]
) -> None:
    async with opened_web(tmp_path, **LIMITS) as web, web.client("user") as http:
        before = len(await rows(web))
        answers = [await http.post("/rpc", json=unknown(100)) for _ in range(200)]
        assert [one.status_code for one in answers] == [200] + [429] * 199
        assert int(answers[-1].headers["retry-after"]) == 60
        codes = [one["error"]["code"] for one in answers[0].json()]
        assert codes == [-32601] * 60 + [-32400] * 40
        assert len(await rows(web)) == before + 61, "sixty, and the first that was too many"
        clock[0] += 60
        left = (await rows(web))[before:]
        assert len(left) == 62
        assert (left[-1]["error_type"], left[-1]["tool_name"]) == ("rate_limited", "nothing")
        assert sum(row["times"] for row in left) == 20_000
        known = await http.post("/v1/tools/health_check", json={})
        assert known.status_code == 200, "calls of known tools are another count"


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/rpc", b"{"),
        ("/rpc", b"[1]"),
        ("/mcp", b"{"),
        ("/v1/tools/nothing", b"{}"),
        ("/rpc", b"[]"),
        ("/rpc", b"[" + 100 * b"1," + b"1]"),
    ],
)
async def test_unreadable_and_unknown_are_limited_on_every_path(
    tmp_path: Path, path: str, content: bytes
) -> None:
    async with opened_web(tmp_path, **LIMITS | {"limits__refusals_per_minute": 4}) as web:
        headers = {
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json",
        }
        async with web.client("user", **headers) as http:
            for _ in range(4):
                assert (await http.post(path, content=content)).status_code != 429
            limited = await http.post(path, content=content)
            for _ in range(10):
                limited = await http.post(path, content=content)
        assert limited.status_code == 429
        assert "retry-after" in limited.headers
        assert len(await rows(web)) == 5
        async with web.client("admin", **headers) as other:
            assert (await other.post(path, content=content)).status_code != 429


@pytest.mark.parametrize("path", ["/mcp", "/rpc"])
async def test_a_body_over_the_limit_is_answered_in_json_rpc(tmp_path: Path, path: str) -> None:
    settings = {"limits__refusals_per_minute": 1, "limits__body_bytes": 1024}
    async with opened_web(tmp_path, **settings) as web, web.client("user") as http:
        first, second = [await http.post(path, content=b" " * 2000) for _ in range(2)]
    assert (first.status_code, second.status_code) == (413, 429)
    assert first.json()["error"]["code"] == -32600
    assert "limits.body_bytes" in first.json()["error"]["message"]
    assert second.json()["error"]["code"] == -32400
    for one in (first, second):
        assert (one.json()["jsonrpc"], one.json()["id"]) == ("2.0", None)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("no/such/method", {}),
        ("prompts/get", {"name": "nothing"}),
        ("resources/read", {"uri": "no://thing"}),
        ("resources/subscribe", {"uri": "no://thing"}),
    ],
)
async def test_what_mcp_does_not_know_is_limited_and_audited(
    tmp_path: Path, method: str, params: dict[str, str]
) -> None:
    asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {"Accept": "application/json, text/event-stream"}
    async with opened_web(tmp_path, **LIMITS | {"limits__refusals_per_minute": 4}) as web:
        async with web.client("user", **headers) as http:
            answers = [await http.post("/mcp", json=asked) for _ in range(10)]
        limited = ["Too many requests" in one.text for one in answers]
        assert limited == [False] * 4 + [True] * 6
        found = await rows(web)
        assert [row["error_type"] for row in found] == ["not_found"] * 4 + ["rate_limited"]
        assert {row["tool_name"] for row in found} == {next(iter(params.values()), method)}


async def test_calls_past_the_rate_limit_leave_one_summary_a_minute(
    tmp_path: Path, clock: list[float]
) -> None:
    settings: dict[str, Any] = {"limits__calls_per_minute": 3}
    async with opened_web(tmp_path, **settings) as web, web.client("user") as http:
        for _ in range(50):
            await http.post("/v1/tools/health_check", json={})
            await http.post("/v1/tools/list_collections", json={})
        assert len(await rows(web)) == 4
        clock[0] += 61
        found = await rows(web)
        assert [row["times"] for row in found] == [1, 1, 1, 1, 96]
        assert (found[-1]["tool_name"], found[-1]["error_type"]) == ("(several)", "rate_limited")


async def test_a_count_that_is_not_over_is_stored_when_the_server_stops(tmp_path: Path) -> None:
    async with opened_web(tmp_path, **LIMITS) as web, web.client("user") as http:
        await http.post("/rpc", json=unknown(100))
    async with opened_web(tmp_path) as again:
        times = sorted(row["times"] for row in await rows(again))
    assert times == [1] * 61 + [39]


# Strangers ------------------------------------------------------------------------------------


async def test_strangers_without_credentials_are_counted_by_peer(tmp_path: Path) -> None:
    async with opened_web(tmp_path, **LIMITS) as web, client(web, "192.0.2.1") as http:
        answers = [await http.get("/v1/tools") for _ in range(100)]
        assert {one.status_code for one in answers} == {401}, "a client has to learn how to sign in"
        assert "resource_metadata=" in answers[-1].headers["www-authenticate"]
        async with client(web, "192.0.2.2") as other:
            assert (await other.get("/v1/tools")).status_code == 401
        found = await rows(web)
        assert len(found) == 62
        assert {row["subject_id"] for row in found} == {"peer:192.0.2.1", "peer:192.0.2.2"}


async def test_strangers_from_many_networks_have_a_limited_number_of_rows_together(
    tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summaries, "MAX_ANONYMOUS_ROWS", 50)
    async with opened_web(tmp_path, **LIMITS) as web:
        for network in range(30):
            async with client(web, f"2001:db8:1:{network:x}::1") as http:
                answers = [await http.get("/v1/tools") for _ in range(5)]
                assert {one.status_code for one in answers} == {401}
        assert len(await rows(web)) == 51, "fifty, and the first of all others"
        clock[0] += 61
        found = await rows(web)
        assert sum(row["times"] for row in found) == 150
        assert (found[-1]["subject_id"], found[-1]["times"]) == ("peer:others", 99)
        async with client(web, "2001:db8:1:1::1") as http:
            await http.get("/v1/tools")
        assert (await rows(web))[-1]["subject_id"] == "peer:2001:db8:1:1::/64", "a new minute"


async def test_refused_strangers_do_not_fill_the_log_of_requests(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "toolgate.requests")
    settings: dict[str, Any] = LIMITS | {"log__requests": True}
    async with opened_web(tmp_path, **settings) as web, client(web, "192.0.2.1") as http:
        for _ in range(200):
            await http.get("/v1/tools")
        assert len(await rows(web)) == 61
    logged = [one for one in caplog.records if one.name == "toolgate.requests"]
    assert len(logged) == 61


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("peer", ["127.0.0.1", "192.0.2.1"])
async def test_guesses_end_before_they_are_looked_up(
    tmp_path: Path, path: str, peer: str, clock: list[float]
) -> None:
    async with opened_web(tmp_path, **LIMITS) as web, client(web, peer) as http:
        answers = [
            (await http.post(path, headers=bearer(f"guess-{one}"), json={})).status_code
            for one in range(30)
        ]
        assert answers == [401] * 20 + [429] * 10
        right = await http.post(path, headers=bearer(web.keys["user"]), json={})
        assert right.status_code == 429, "a right guess looks like a wrong one"
        clock[0] += 120
        right = await http.post(path, headers=bearer(web.keys["user"]), json={})
        assert right.status_code not in (401, 429)


async def test_guesses_that_cannot_be_counted_are_audited_under_a_rule_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any, **__: Any) -> None:
        raise Unavailable("Requests cannot be counted now.")

    async with opened_web(tmp_path, **LIMITS) as web, client(web, "192.0.2.1") as http:
        for way in ("check", "admit"):
            monkeypatch.setattr(web.kit.app.gate.limits.peers, way, away)
        answer = await http.get("/v1/tools", headers=bearer("guess"))
        assert answer.status_code == 503
        assert (await rows(web))[-1]["rule"] == "counters-unavailable"


async def test_who_was_known_at_that_address_keeps_working(tmp_path: Path) -> None:
    async with opened_web(tmp_path, **LIMITS) as web, client(web, "192.0.2.1") as http:
        assert (await http.get("/v1/tools", headers=bearer(web.keys["user"]))).status_code == 200
        for one in range(30):
            await http.get("/v1/tools", headers=bearer(f"guess-{one}"))
        web.kit.app.credentials.forget()
        assert (await http.get("/v1/tools", headers=bearer(web.keys["user"]))).status_code == 200
        made = await web.kit.app.keys.create(role=Role.USER)
        assert (await http.get("/v1/tools", headers=bearer(made.key))).status_code == 429
        assert (await http.get("/v1/tools", headers=bearer(ADMIN_KEY))).status_code == 429
        async with client(web, "192.0.2.2") as other:
            assert (await other.get("/v1/tools", headers=bearer(made.key))).status_code == 200


async def test_a_client_that_repeats_one_wrong_key_does_not_shut_others_out(
    tmp_path: Path,
) -> None:
    async with opened_web(tmp_path, **LIMITS) as web, client(web, "192.0.2.1") as http:
        for _ in range(100):
            last = await http.get("/v1/tools", headers=bearer("an-old-key"))
        assert last.status_code == 429
        assert (await http.get("/v1/tools", headers=bearer(web.keys["user"]))).status_code == 200


async def test_strangers_from_many_addresses_leave_a_bounded_number_of_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.gate.summaries.MAX_ANONYMOUS", 5)
    settings = {"limits__refusals_per_minute": 1}
    async with opened_web(tmp_path, **settings) as web:
        for number in range(20):
            async with client(web, f"192.0.2.{number}") as http:
                for _ in range(3):
                    await http.get("/v1/tools")
        await web.kit.app.gate.audit.flush(last=True)
        found = [row for row in await rows(web) if row["error_type"] == "rate_limited"]
        assert sum(row["times"] for row in found) == 40
        assert len(found) == 2 * 6, "five peers, and all others together"

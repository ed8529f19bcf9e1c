"""Sessions and event streams are counted for each caller: one cannot take the others' room."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
from tests.identity.oauth.flow import registered
from tests.patience import PATIENT
from tests.servers import Server, running_server
from tests.transports.conftest import ADMIN_KEY, Web, opened_web
from tests.transports.mcp_requests import LEGACY, MODERN, initialize, message_of, request

from toolgate.transports.mcp.quotas import QuotaReached, SessionQuota, StreamQuota

pytestmark = pytest.mark.anyio

MOST = 3
RESOURCE = "http://127.0.0.1/mcp"
STREAM = {"Accept": "text/event-stream", "MCP-Protocol-Version": LEGACY}


@pytest.fixture
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    folder = tmp_path_factory.mktemp("quotas")
    async with opened_web(folder, mcp__sessions=MOST) as opened:
        yield opened


async def open_session(http: httpx2.AsyncClient) -> str:
    answer = await initialize("sampling").send(http)
    assert answer.status_code == 200, answer.text
    return answer.headers["mcp-session-id"]


async def ping(http: httpx2.AsyncClient, session_id: str) -> int:
    asked = request(LEGACY, "ping").having(mcp_session_id=session_id)
    return (await asked.send(http)).status_code


async def test_the_session_idle_for_longest_makes_room(web: Web) -> None:
    async with web.client() as http:
        first, second, third = [await open_session(http) for _ in range(MOST)]
        assert await ping(http, first) == 200
        fourth = await open_session(http)
        found = {name: await ping(http, name) for name in (first, second, third, fourth)}
    assert found == {first: 200, second: 404, third: 200, fourth: 200}


async def test_many_sessions_of_one_caller_leave_the_others_alone(web: Web) -> None:
    async with web.client("user") as other, web.client() as greedy:
        session = await open_session(other)
        opened = [await open_session(greedy) for _ in range(5 * MOST)]
        assert await ping(other, session) == 200
        alive = [name for name in opened if await ping(greedy, name) == 200]
    assert alive == opened[-MOST:]


async def test_a_session_that_was_ended_leaves_room(web: Web) -> None:
    async with web.client() as http:
        first, second, third = [await open_session(http) for _ in range(MOST)]
        ended = await http.delete("/mcp", headers={"Mcp-Session-Id": second, **STREAM})
        assert ended.status_code == 200, ended.text
        await open_session(http)
        assert [await ping(http, name) for name in (first, third)] == [200, 200]


async def test_a_session_belongs_to_the_grant_and_not_to_the_person(web: Web) -> None:
    async with web.client(None) as one, web.client(None) as other:
        for http in (one, other):
            token = await (await registered(http)).tokens(ADMIN_KEY, resource=RESOURCE)
            http.headers["Authorization"] = f"Bearer {token['access_token']}"
        session = await open_session(one)
        assert await ping(other, session) == 404
        ended = await other.delete("/mcp", headers={"Mcp-Session-Id": session})
        assert ended.status_code == 404
        assert await ping(one, session) == 200


def test_sessions_in_use_are_not_ended_and_idle_ones_expire() -> None:
    now = [0.0]
    quota = SessionQuota(2, 60.0, lambda: now[0])
    for name in ("a", "b"):
        with quota.reserve("caller") as opening:
            opening.confirm(name)
    with quota.using("caller", "a"):
        with (
            quota.using("caller", "b"),
            pytest.raises(QuotaReached, match=r"mcp\.sessions"),
            quota.reserve("caller"),
        ):
            pass
        with quota.reserve("caller") as opening:
            assert opening.replaces == "b"
            with pytest.raises(QuotaReached), quota.reserve("caller"):
                pass
    now[0] = 61.0
    with quota.reserve("caller") as opening:
        assert opening.replaces is None


def test_what_is_closed_is_not_remembered() -> None:
    sessions, streams = SessionQuota(2, 60.0, lambda: 0.0), StreamQuota(1)
    with sessions.reserve("caller") as opening:
        opening.confirm("a")
    sessions.forget("caller", "a")
    with streams.reserve("caller"):
        pass
    assert (sessions, streams) == (SessionQuota(2, 60.0, sessions.now), StreamQuota(1))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with running_server(tmp_path_factory, mcp__streams=MOST) as started:
        yield started


@asynccontextmanager
async def streaming(server: Server, holder: str, listen: bool) -> AsyncGenerator[httpx2.Response]:
    """An event stream: of the older protocol with GET, of the newer one as a subscription."""
    headers = {"Authorization": f"Bearer {server.key_of(holder)}"}
    async with httpx2.AsyncClient(
        base_url=server.url, headers=headers, trust_env=False, timeout=PATIENT
    ) as http:
        if listen:
            asked = request(
                MODERN, "subscriptions/listen", {"notifications": {"toolsListChanged": True}}
            )
            sent = http.stream("POST", "/mcp", json=asked.body, headers=asked.headers)
        else:
            sent = http.stream("GET", "/mcp", headers=STREAM)
        async with sent as answer:
            yield answer


@pytest.mark.parametrize("listen", [False, True])
async def test_event_streams_are_counted_for_each_caller(server: Server, listen: bool) -> None:
    async with AsyncExitStack() as stack:
        for _ in range(MOST):
            answer = await stack.enter_async_context(streaming(server, "admin", listen))
            assert answer.status_code == 200
            assert answer.headers["content-type"].startswith("text/event-stream")
        async with streaming(server, "admin", listen) as refused:
            await refused.aread()
            assert refused.status_code == (400 if listen else 429)
            assert "mcp.streams" in message_of(refused)["error"]["message"]
        async with streaming(server, "user", listen) as other:
            assert other.status_code == 200
    with anyio.fail_after(PATIENT):
        while True:  # until the server has seen that the streams are closed
            async with streaming(server, "admin", listen) as again:
                if again.headers["content-type"].startswith("text/event-stream"):
                    return
                await again.aread()

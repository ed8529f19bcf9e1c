"""The files of `deploy/` at work: a real nginx and a real Caddy, and a real server behind them."""

import ssl
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import mcp
import mcp_types as types
import pytest
from mcp.client.streamable_http import streamable_http_client
from tests.deploy.hosting import ADMIN_KEY, ASKING, Host, hosted
from tests.deploy.proxies import PROXIES
from tests.patience import PATIENT

from toolgate.settings import read_settings

PROTECTED = "/.well-known/oauth-protected-resource"
ISSUER = "/.well-known/oauth-authorization-server"
MOST = read_settings(environment={}).limits.body_bytes
FORGED = {
    "X-Forwarded-Host": "evil.example",
    "X-Forwarded-Proto": "http",
    "X-Forwarded-For": "203.0.113.9",
    "Forwarded": "host=evil.example;proto=http",
}
STRANGER = "127.0.0.2"
"""An address of this machine that is not the trusted proxy's."""


@pytest.fixture(scope="module", params=PROXIES)
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    with hosted(request.param) as started:
        yield started


@pytest.fixture(scope="module", params=PROXIES)
def guessing(request: pytest.FixtureRequest) -> Iterator[Host]:
    """A server that is not told its address: it reads it from what the proxy tells."""
    with hosted(request.param, knows_its_address=False) as started:
        yield started


@pytest.fixture(scope="module")
def nginx() -> Iterator[Host]:
    with hosted("nginx") as started:
        yield started


@asynccontextmanager
async def session(host: Host, **options: Any) -> AsyncGenerator[mcp.Client, None]:
    """The official client, through the proxy."""
    async with httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {ADMIN_KEY}"},
        verify=host.trust,
        trust_env=False,
        timeout=PATIENT,
    ) as http:
        transport = streamable_http_client(f"{host.url}/mcp", http_client=http)
        async with mcp.Client(transport, **options) as client:
            yield client


# Calls


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_official_client_calls_through_the_proxy(host: Host, mode: str) -> None:
    async with session(host, mode=mode) as client:
        listed = (await client.list_tools()).tools
        called = await client.call_tool("list_collections", {})
    assert "get_document" in [tool.name for tool in listed]
    assert called.is_error is False
    assert called.structured_content is not None
    assert len(called.structured_content["collections"]) == 12


@pytest.mark.anyio
@pytest.mark.parametrize("proxy", PROXIES)
async def test_events_arrive_while_their_stream_is_open(proxy: str) -> None:
    """The call ends only once its question, an event of its stream, has come and is answered."""
    asked: list[str] = []

    async def answer(context: Any, params: Any) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"username": "jane", "email": "j@x"})

    with hosted(proxy, program=ASKING) as host, anyio.fail_after(PATIENT):
        async with session(host, mode="legacy", elicitation_callback=answer) as client:
            called = await client.call_tool("test_elicitation", {"message": "Who are you?"})
    assert asked == ["Who are you?"]
    assert isinstance(called.content[0], types.TextContent)
    assert "action=accept" in called.content[0].text


# Addresses


def test_clients_are_told_the_public_address(host: Host) -> None:
    with host.client(key=None) as http:
        resource = http.get(f"{PROTECTED}/mcp").json()
        issuer = http.get(ISSUER).json()
        refused = http.post("/mcp", json={})
    assert resource["resource"] == f"{host.url}/mcp"
    assert resource["authorization_servers"] == [host.url]
    assert issuer["issuer"] == host.url
    assert issuer["token_endpoint"].startswith(f"{host.url}/")
    assert refused.status_code == 401
    challenge = refused.headers["www-authenticate"]
    assert f'resource_metadata="{host.url}{PROTECTED}/mcp"' in challenge


def test_forged_headers_change_nothing(host: Host) -> None:
    with host.client(key=None) as http:
        for path in (PROTECTED, ISSUER):
            assert http.get(path, headers=FORGED).json() == http.get(path).json()
        challenge = http.post("/mcp", headers=FORGED).headers["www-authenticate"]
    assert f'"{host.url}{PROTECTED}/mcp"' in challenge


def test_the_proxy_tells_scheme_and_host(guessing: Host) -> None:
    with guessing.client(key=None) as http:
        assert told_issuer(http, {}) in (guessing.url, "https://localhost")


def test_the_proxy_lets_no_forged_header_through(guessing: Host) -> None:
    with guessing.client(key=None) as http:
        real = told_issuer(http, {})
        assert told_issuer(http, FORGED) == real
        for name, value in FORGED.items():
            assert told_issuer(http, {name: value}) == real


def told_issuer(http: httpx2.Client, headers: dict[str, str]) -> str:
    answer = http.get(ISSUER, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()["issuer"]


def test_headers_of_a_stranger_who_goes_past_the_proxy_change_nothing(
    host: Host, guessing: Host
) -> None:
    with host.direct(STRANGER) as http:
        assert http.get(ISSUER, headers=FORGED).json()["issuer"] == host.url
    with guessing.direct(STRANGER) as http:
        assert http.get(ISSUER, headers=FORGED).json()["issuer"] == guessing.inner_url


def test_the_trusted_address_alone_is_believed(guessing: Host) -> None:
    """The counter-check: what the tests above send would matter if it were believed."""
    told = {"X-Forwarded-Host": "localhost:1", "X-Forwarded-Proto": "https"}
    with guessing.direct("127.0.0.1") as http:
        assert http.get(ISSUER, headers=told).json()["issuer"] == "https://localhost:1"
    with guessing.direct(STRANGER) as http:
        assert http.get(ISSUER, headers=told).json()["issuer"] == guessing.inner_url


def test_another_host_name_is_not_served(nginx: Host) -> None:
    with nginx.client() as http:
        refused = http.get("/healthz", headers={"Host": "evil.example"})
    assert refused.status_code == 421
    anything = ssl.create_default_context()
    anything.check_hostname, anything.verify_mode = False, ssl.CERT_NONE
    with (
        httpx2.Client(verify=anything, trust_env=False) as http,
        pytest.raises(httpx2.ConnectError, match=r"(?i)unrecognized"),
    ):
        http.get(f"https://127.0.0.1:{nginx.place.outer}/healthz")


def test_plain_http_leads_to_https(nginx: Host) -> None:
    with httpx2.Client(trust_env=False) as http:
        told = http.get(
            f"http://127.0.0.1:{nginx.place.plain}/mcp?a=b", headers={"Host": "localhost"}
        )
    assert (told.status_code, told.headers["location"]) == (301, f"{nginx.url}/mcp?a=b")


# Limits and failures


def test_a_body_over_the_limit_is_refused_by_the_proxy(host: Host) -> None:
    with host.client() as http:
        refused = http.post("/rpc", content=b" " * (MOST + 1))
        fits = http.post("/rpc", content=b" " * MOST)
    assert refused.status_code == 413
    assert "limits.body_bytes" in refused.json()["error"]
    assert "x-request-id" not in refused.headers, "toolgate answered, not the proxy"
    assert fits.status_code != 413
    assert fits.headers["x-request-id"]


def test_secrets_in_addresses_stay_out_of_the_log(nginx: Host) -> None:
    with nginx.client() as http:
        http.get("/healthz?code=one-time-code")
        http.get("/readyz")
        log = ""
        for _ in range(1000):  # a line is written after its answer was sent
            http.get("/healthz?code=one-time-code")
            log = nginx.place.log.read_text(encoding="utf-8")
            if "GET /readyz 200" in log:
                break
    assert "GET /readyz 200" in log
    assert "GET /healthz 200" in log
    assert "one-time-code" not in log


@pytest.mark.parametrize("proxy", PROXIES)
def test_a_restart_behind_the_proxy(proxy: str) -> None:
    with hosted(proxy) as host, host.client() as http:
        assert http.get("/readyz").status_code == 200
        host.stop()
        away = http.post("/v1/tools/list_collections", json={})
        assert away.status_code == 502
        assert away.json() == {"error": "toolgate does not answer now. Try again."}
        assert away.headers["retry-after"] == "2"
        host.start()
        back = http.post("/v1/tools/list_collections", json={})
        assert back.status_code == 200
        assert len(back.json()["collections"]) == 12

"""One TLS context and one pool; what is kept on a connection, and who goes through a proxy."""

import ssl
from pathlib import Path
from typing import Any

import httpcore2
import pytest
from tests.extend.raw_backend import RawBackend, raw_backend, response
from tests.identity.certificates import contexts
from tests.identity.publisher import Answer, Publisher
from tests.outbound.patient import patient

from toolgate.outbound.client import Outbound
from toolgate.outbound.hops import AddressPolicy
from toolgate.outbound.json_fetcher import JsonFetcher
from toolgate.outbound.responses import FetchFailed
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio

UNPROXIED = [AddressPolicy.PUBLIC, AddressPolicy.DIRECT]


def good(number: int) -> list[bytes]:
    return [response(b"{}", b"Content-Type: application/json", b"Set-Cookie: a=b")]


def address(backend: RawBackend, scheme: str = "http") -> str:
    return f"{scheme}://localhost:{backend.port}/it"


async def test_one_tls_context_serves_every_way_out(
    published: Publisher, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Making one costs more than the request."""
    made: list[ssl.SSLContext] = []
    make = httpcore2.default_ssl_context

    def count(**how: Any) -> ssl.SSLContext:
        made.append(make(**how))
        return made[-1]

    monkeypatch.setattr(httpcore2, "default_ssl_context", count)
    published.answers["/it"] = Answer({})
    url, allow = f"{published.url}/it", f"127.0.0.1:{published.port}"
    async with opened_kit(tmp_path, outbound__allow=allow) as kit:
        outbound = kit.app.outbound
        assert made == [], "nothing is made before it is needed"
        for address_policy in [*AddressPolicy, *AddressPolicy]:
            await outbound.fetch(url, patient(), address_policy=address_policy)
        monkeypatch.setenv("http_proxy", published.url)
        with pytest.raises(FetchFailed, match="status 404"):
            await outbound.fetch(
                "http://far.example/", patient(), address_policy=AddressPolicy.PROXIED
            )
        for _ in range(2):
            async with outbound.client(3) as client:
                assert (await client.get(url)).status_code == 200
    assert len(made) == 1


@pytest.mark.parametrize(
    ("address_policy", "connections"),
    [(AddressPolicy.DIRECT, 1), (AddressPolicy.PROXIED, 1), (AddressPolicy.PUBLIC, 3)],
)
async def test_a_connection_is_kept_unless_its_address_was_pinned(
    address_policy: AddressPolicy, connections: int
) -> None:
    with raw_backend(good) as backend:
        async with Outbound([f"localhost:{backend.port}"]) as outbound:
            for _ in range(3):
                await outbound.fetch(address(backend), patient(), address_policy=address_policy)
    assert (len(backend.requests), backend.connections) == (3, connections)


async def test_two_names_of_one_address_share_no_connection(tmp_path: Path) -> None:
    """The second name is not in the certificate, which a shared connection would hide."""
    server, client = contexts("localhost", tmp_path)

    async def here(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    with raw_backend(good, server) as backend:
        allow = [f"localhost:{backend.port}", f"other.example:{backend.port}"]
        async with Outbound(allow, resolve=here, tls=client) as outbound:
            await outbound.fetch(
                address(backend, "https"), patient(), address_policy=AddressPolicy.DIRECT
            )
            await outbound.fetch(address(backend, "https"), patient())
            with pytest.raises(FetchFailed, match=r"other\.example could not be reached"):
                await outbound.fetch(f"https://other.example:{backend.port}/it", patient())
    assert len(backend.requests) == 2


@pytest.mark.parametrize("address_policy", UNPROXIED)
async def test_neither_proxy_nor_netrc_is_used_for_addresses_of_others(
    address_policy: AddressPolicy,
    published: Publisher,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    (tmp_path / ".netrc").write_text("machine localhost login a password b\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.setenv("http_proxy", published.url)
    with raw_backend(good) as backend:
        async with Outbound([f"localhost:{backend.port}"]) as outbound:
            await outbound.fetch(address(backend), patient(), address_policy=address_policy)
            async with outbound.client(3) as client:
                await client.get(address(backend))
    assert published.seen == []
    assert len(backend.requests) == 2
    assert b"uthorization" not in b"".join(backend.requests)


@pytest.mark.parametrize("scheme", ["", "http://"])
async def test_addresses_of_the_operator_go_through_the_operators_proxy(
    scheme: str, published: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"{scheme}127.0.0.1:{published.port}")
    published.answers["http://keys.example/jwks"] = Answer({"keys": []})
    async with Outbound() as outbound:
        fetcher = JsonFetcher(outbound=outbound, address_policy=AddressPolicy.PROXIED)
        assert (await fetcher.get("http://keys.example/jwks")).body == {"keys": []}
    assert published.seen[0].headers["host"] == "keys.example"


@pytest.mark.parametrize("exempt", ["localhost", "*", "localhost:{port}"])
async def test_unless_no_proxy_names_them(
    exempt: str, published: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    with raw_backend(good) as backend:
        monkeypatch.setenv("http_proxy", published.url)
        monkeypatch.setenv("no_proxy", exempt.format(port=backend.port))
        async with Outbound() as outbound:
            await outbound.fetch(address(backend), patient(), address_policy=AddressPolicy.PROXIED)
    assert (published.seen, len(backend.requests)) == ([], 1)


async def test_no_cookie_is_kept_and_no_header_stays_with_the_next_call() -> None:
    with raw_backend(good) as backend:
        async with Outbound() as outbound:
            for _ in range(2):
                await outbound.fetch(
                    address(backend), patient(), address_policy=AddressPolicy.DIRECT
                )
            async with outbound.client(3) as client:
                client.headers["X-Of-One-Call"] = "secret"
                await client.get(address(backend))
                await client.get(address(backend))
            await outbound.client(3).get(address(backend))
    assert b"ookie" not in b"".join(backend.requests)
    assert [b"secret" in one for one in backend.requests] == [False, False, True, True, False]
    assert backend.connections == 1, "a client that is closed leaves the shared connections"

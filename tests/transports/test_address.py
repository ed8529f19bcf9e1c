"""Our own address: the proxy's headers count only from a trusted proxy."""

from pathlib import Path
from typing import Any

import pytest
from tests.transports.conftest import opened_web

from toolgate.sections import ServerSettings
from toolgate.settings import BadSettings
from toolgate.testing import opened_kit
from toolgate.transports.address import Addresses

pytestmark = pytest.mark.anyio

METADATA = "/.well-known/oauth-protected-resource/mcp"


def seen(server: ServerSettings, peer: str | None = "10.0.0.7", **headers: str) -> str | None:
    """The base address of a request with these headers; None when its host is not clear."""
    sent = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    scope: dict[str, Any] = {"scheme": "http", "headers": sent}
    if peer:
        scope["client"] = (peer, 1234)
    addresses = Addresses(server)
    address = addresses.address(*addresses.requested(scope))
    return address.base if address else None


TRUSTING = ServerSettings(trusted_proxies=("10.0.0.0/24", "::1"))
FORWARDED = {"x_forwarded_proto": "https", "x_forwarded_host": "tools.example.com"}


def test_without_a_proxy_the_host_header_counts() -> None:
    assert seen(ServerSettings(), host="Localhost:8765") == "http://localhost:8765"


def test_a_strangers_forwarded_headers_count_for_nothing() -> None:
    both = {**FORWARDED, "forwarded": "host=evil.example;proto=https"}
    assert seen(ServerSettings(), host="a.example", **both) == "http://a.example"
    assert seen(TRUSTING, "10.0.1.7", host="a.example", **both) == "http://a.example"
    assert seen(TRUSTING, None, host="a.example", **both) == "http://a.example"
    assert seen(TRUSTING, "nonsense", host="a.example", **both) == "http://a.example"


@pytest.mark.parametrize("peer", ["10.0.0.7", "::1", "::ffff:10.0.0.9"])
def test_a_trusted_proxys_headers_count(peer: str) -> None:
    assert seen(TRUSTING, peer, host="inner", **FORWARDED) == "https://tools.example.com"


def test_each_header_may_come_alone() -> None:
    assert seen(TRUSTING, host="a.example", x_forwarded_proto="https") == "https://a.example"
    assert seen(TRUSTING, host="inner", x_forwarded_host="b.example") == "http://b.example"
    assert seen(TRUSTING, host="a.example") == "http://a.example"


@pytest.mark.parametrize(
    ("forwarded", "base"),
    [
        ("proto=https;host=b.example", "https://b.example"),
        ('for=1.2.3.4; Proto=HTTPS; Host="b.example:8443"', "https://b.example:8443"),
        ("host=evil.example, host=b.example", "http://b.example"),
        ("for=1.2.3.4", "http://a.example"),
        ('host="a,b"', None),
        ("host", None),
        ("host=evil.example/x", None),
    ],
)
def test_the_standard_header_counts_too(forwarded: str, base: str | None) -> None:
    assert seen(TRUSTING, host="a.example", forwarded=forwarded) == base


def test_of_several_values_the_nearest_proxys_counts() -> None:
    """What a stranger sends is before what the proxy adds."""
    told = "evil.example, tools.example.com"
    assert seen(TRUSTING, host="x", x_forwarded_host=told) == "http://tools.example.com"


def test_headers_that_contradict_are_not_believed() -> None:
    told = "host=evil.example;proto=https"
    assert seen(TRUSTING, host="a.example", forwarded=told, **FORWARDED) is None


@pytest.mark.parametrize(
    "host", ["evil.example/x", "a@b", "a b", "a\r\nb", "a,b", "[::1", "a:b", "a:123456", "?", ""]
)
def test_a_host_that_is_none_is_not_believed(host: str) -> None:
    assert seen(ServerSettings(), host=host) is None
    forwarded = seen(TRUSTING, host="a.example", x_forwarded_host=host)
    assert forwarded in (None, "http://b", "http://a.example")


def test_an_odd_scheme_is_not_believed() -> None:
    assert seen(TRUSTING, host="a.example", x_forwarded_proto="javascript") is None


def test_the_public_address_wins() -> None:
    server = ServerSettings(public_url="https://Tools.example.com/", trusted_proxies=("10.0.0.7",))
    assert seen(server, host="a.example", x_forwarded_host="evil.example") == (
        "https://tools.example.com"
    )


@pytest.mark.parametrize(
    "url",
    ["tools.example.com", "ftp://a.example", "https://a.example/path", "https://a@b.example",
     "https://a.example?x", "https://a.example#x", "https://", "https://[::1", "javascript:x"],
)  # fmt: skip
async def test_a_bad_public_address_is_told_at_the_start(url: str, tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"server\.public_url"):
        async with opened_kit(tmp_path, server__public_url=url):
            pytest.fail("it started")


@pytest.mark.parametrize("entry", ["proxy.example", "10.0.0.0/33", "10.0.0.1/24", "*", "x"])
async def test_a_bad_proxy_is_told_at_the_start(entry: str, tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"server\.trusted_proxies"):
        async with opened_kit(tmp_path, server__trusted_proxies=(entry,)):
            pytest.fail("it started")


async def test_a_smuggled_host_changes_nothing(tmp_path: Path) -> None:
    """A token must not be made for, nor a person sent to, an address that a stranger chose."""
    smuggled = {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "https",
                "Forwarded": "host=evil.example"}  # fmt: skip
    async with opened_web(tmp_path) as web, web.client(None) as http:
        for path in (METADATA, "/.well-known/oauth-authorization-server"):
            told = await http.get(path, headers=smuggled)
            assert told.status_code == 200
            assert "evil" not in told.text
        challenge = (await http.post("/mcp", headers=smuggled)).headers["www-authenticate"]
    assert "evil" not in challenge


async def test_the_host_a_proxy_tells_is_checked_too(tmp_path: Path) -> None:
    settings = {
        "server__trusted_proxies": ("127.0.0.1",),
        "server__allowed_hosts": ("tools.example.com",),
    }
    async with opened_web(tmp_path, **settings) as web, web.client(None, host="inner") as http:
        good = {"X-Forwarded-Host": "tools.example.com", "X-Forwarded-Proto": "https"}
        told = await http.get(METADATA, headers=good)
        assert told.json()["resource"] == "https://tools.example.com/mcp"
        evil = {"X-Forwarded-Host": "evil.example"}
        assert (await http.get(METADATA, headers=evil)).status_code == 421
        assert (await http.get(METADATA)).status_code == 421


async def test_the_public_host_is_served_without_being_listed(tmp_path: Path) -> None:
    settings = {"server__public_url": "https://tools.example.com"}
    async with (
        opened_web(tmp_path, **settings) as web,
        web.client(None, host="tools.example.com") as http,
    ):
        told = await http.get(METADATA)
    assert told.json()["authorization_servers"] == ["https://tools.example.com"]

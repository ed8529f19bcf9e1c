"""Addresses that strangers choose: what is refused before a connection, and what afterwards."""

import gzip
import ipaddress
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.identity.certificates import contexts
from tests.identity.publisher import Answer, Publisher, publishing
from tests.patience import PATIENT

from toolgate.outbound.addresses import SPECIAL_V4, is_public
from toolgate.outbound.client import Outbound
from toolgate.outbound.json_fetcher import JsonFetcher
from toolgate.outbound.responses import FetchFailed

pytestmark = pytest.mark.anyio

NAME = "client.example"
PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.215.14", "2606:4700:4700::1111", "2a00:1450:4001::200e"]
INSIDE = [
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "240.0.0.1",
    "198.18.0.1",
    "192.0.0.192",
    "::",
    "::1",
    "fe80::1",
    "fe80::1%1",
    "fc00::1",
    "fd00:ec2::254",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::a00:1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2001:0:7f00:1::1",
    "2001:0:4136:e378:8000:63bf:f5ff:fffe",
    "5f00::1",
    "100::1",
]


@asynccontextmanager
async def guarded(*allow: str, seconds: float = 5, **how: Any) -> AsyncGenerator[JsonFetcher]:
    async with Outbound(allow, **how) as outbound:
        yield JsonFetcher(outbound=outbound, seconds=seconds)


@pytest.fixture
async def lenient(published: Publisher) -> AsyncIterator[JsonFetcher]:
    """Reaches the test's own server; everything else is as strict as ever."""
    async with guarded(f"127.0.0.1:{published.port}", seconds=PATIENT) as fetcher:
        yield fetcher


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Where connections were tried to; none is made."""
    tried: list[str] = []

    async def refuse(remote_host: str, **_: Any) -> None:
        tried.append(remote_host)
        raise OSError("no connections in this test")

    monkeypatch.setattr(anyio, "connect_tcp", refuse)
    return tried


def answering(*answers: list[str]) -> Any:
    """A resolver that gives one answer after the other, and the last one from then on."""
    waiting = list(answers)

    async def resolve(host: str, port: int) -> list[str]:
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    return resolve


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_that_leads_inside_is_not(address: str) -> None:
    assert not is_public(address)


@given(st.ip_addresses())
def test_nothing_is_public_that_python_calls_special(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if is_public(str(address)):
        assert address.is_global
        assert not address.is_multicast


SPECIAL = st.sampled_from(SPECIAL_V4).flatmap(lambda network: st.ip_addresses(network=network))


@given(SPECIAL)
def test_a_special_address_inside_an_ipv6_one_is_refused(address: ipaddress.IPv4Address) -> None:
    number = int(address)
    carriers = {
        "mapped": (0xFFFF << 32) | number,
        "compatible": number,
        "translated": (0x64FF9B << 96) | number,
        "6to4": (0x2002 << 112) | (number << 80),
        "teredo": (0x20010000 << 96) | (number ^ 0xFFFFFFFF),
    }
    for kind, carried in carriers.items():
        assert not is_public(str(ipaddress.IPv6Address(carried))), kind


LOCAL = st.sampled_from(["127.0.0.0/8", "10.0.0.0/8", "192.168.0.0/16", "169.254.0.0/16"]).flatmap(
    lambda network: st.ip_addresses(network=ipaddress.IPv4Network(network))
)


@given(LOCAL)
def test_however_an_inside_address_is_spelled_nothing_is_fetched(
    address: ipaddress.IPv4Address,
) -> None:
    number, octets = int(address), address.packed
    spelled = [
        str(address),
        str(number),
        hex(number),
        f"0{number:o}",
        ".".join(hex(octet) for octet in octets),
        ".".join(f"0{octet:o}" for octet in octets),
        f"{octets[0]}.{number & 0xFFFFFF}",
        f"{octets[0]}.{octets[1]}.{number & 0xFFFF}",
        f"[::ffff:{address}]",
        f"[64:ff9b::{address}]",
    ]

    async def fetch_all() -> None:
        async with guarded() as fetcher:
            for host in spelled:
                with pytest.raises(FetchFailed, match=r"has no public address|not a valid URL"):
                    await fetcher.get(f"https://{host}/client.json")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(anyio, "connect_tcp", lambda *_, **__: pytest.fail("it connected"))
        anyio.run(fetch_all)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://client.example/a", "must begin with https://"),
        ("ftp://client.example/a", "must begin with https://"),
        ("file:///etc/passwd", "must name a host"),
        ("https:///a", "must name a host"),
        ("https://user:secret@client.example/a", "no user or password"),
        ("https://client.example:8443/a", "must use port 443"),
        ("https://client.example:22/a", "must use port 443"),
        ("https://[::1/a", "not a valid URL"),
        ("https://localhost/a", "has no public address"),
        ("https://localhost./a", "has no public address"),
    ],
)
async def test_an_address_against_the_rules_is_refused(
    url: str, reason: str, connections: list[str]
) -> None:
    async with guarded() as fetcher:
        with pytest.raises(FetchFailed, match=reason):
            await fetcher.get(url)
    assert connections == []


@pytest.mark.parametrize("address", INSIDE)
async def test_a_name_for_an_inside_address_is_refused(
    address: str, connections: list[str]
) -> None:
    async with guarded(resolve=answering([address])) as fetcher:
        with pytest.raises(FetchFailed, match=r"client\.example has no public address"):
            await fetcher.get(f"https://{NAME}/client.json")
    assert connections == []


async def test_one_inside_address_among_public_ones_is_enough_to_refuse(
    connections: list[str],
) -> None:
    async with guarded(resolve=answering([PUBLIC[0], "10.0.0.1"])) as fetcher:
        with pytest.raises(FetchFailed, match="has no public address"):
            await fetcher.get(f"https://{NAME}/client.json")
    assert connections == []


async def test_a_name_that_does_not_exist_is_told_like_one_inside() -> None:
    async with guarded(resolve=answering([])) as fetcher:
        with pytest.raises(FetchFailed, match=r"^client\.example has no public address\.$"):
            await fetcher.get(f"https://{NAME}/client.json")


async def test_the_connection_goes_to_the_address_that_was_checked(
    connections: list[str],
) -> None:
    rebinding = answering([PUBLIC[0]], ["127.0.0.1"])
    async with guarded(resolve=rebinding) as fetcher:
        with pytest.raises(FetchFailed, match="could not be reached"):
            await fetcher.get(f"https://{NAME}/client.json")
        assert connections == [PUBLIC[0]]
        with pytest.raises(FetchFailed, match="has no public address"):
            await fetcher.get(f"https://{NAME}/client.json")
    assert connections == [PUBLIC[0]]


async def test_every_checked_address_is_tried(connections: list[str]) -> None:
    async with guarded(resolve=answering(PUBLIC)) as fetcher:
        with pytest.raises(FetchFailed, match="could not be reached"):
            await fetcher.get(f"https://{NAME}/client.json")
    assert connections == PUBLIC


async def test_tls_and_host_are_those_of_the_name(tmp_path: Path) -> None:
    server, client = contexts(NAME, tmp_path)
    resolver = answering(["127.0.0.1"], ["10.0.0.1"])
    with publishing(server) as published:
        published.answers["/client.json"] = Answer({"it": "works"})
        async with guarded(f"{NAME}:{published.port}", resolve=resolver, tls=client) as fetcher:
            fetched = await fetcher.get(f"https://{NAME}:{published.port}/client.json?a=b")
    assert fetched.body == {"it": "works"}
    assert published.names == [NAME]
    assert published.seen[0].headers["host"] == f"{NAME}:{published.port}"


@pytest.mark.parametrize("trusted", [True, False])
async def test_a_certificate_of_another_name_or_authority_is_refused(
    trusted: bool, tmp_path: Path
) -> None:
    server, client = contexts("other.example" if trusted else NAME, tmp_path)
    with publishing(server) as published:
        published.answers["/client.json"] = Answer({})
        async with guarded(
            f"{NAME}:{published.port}",
            resolve=answering(["127.0.0.1"]),
            tls=client if trusted else None,
        ) as fetcher:
            with pytest.raises(FetchFailed, match="could not be reached"):
                await fetcher.get(f"https://{NAME}:{published.port}/client.json")
    assert published.seen == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_to_an_inside_address_is_not_followed(
    status: int, published: Publisher, lenient: JsonFetcher
) -> None:
    elsewhere = {"Location": f"{published.url}/inside.json"}
    published.answers["/client.json"] = Answer({}, status, elsewhere)
    published.answers["/inside.json"] = Answer({"secret": "inside"})
    with pytest.raises(FetchFailed, match="redirects are not followed"):
        await lenient.get(f"{published.url}/client.json")
    assert published.asked("/inside.json") == 0


@pytest.mark.parametrize("length", [{}, {"Content-Length": "1000000000"}])
async def test_a_huge_body_is_cut_off(
    length: dict[str, str], published: Publisher, lenient: JsonFetcher
) -> None:
    sent: list[int] = []

    def endless() -> Iterator[bytes]:
        for _ in range(100_000):
            sent.append(1)
            yield b" " * 10_000

    published.answers["/client.json"] = Answer(endless(), headers=length)
    with pytest.raises(FetchFailed, match="more than 65,536 bytes"):
        await lenient.get(f"{published.url}/client.json")
    assert len(sent) < 10_000


async def test_a_body_as_large_as_allowed_is_read(
    published: Publisher, lenient: JsonFetcher
) -> None:
    whole = b'{"a":"' + b"x" * (64 * 1024 - 8) + b'"}'
    published.answers["/client.json"] = Answer(whole)
    assert len((await lenient.get(f"{published.url}/client.json")).body["a"]) == 64 * 1024 - 8
    published.answers["/client.json"] = Answer(whole + b" ")
    with pytest.raises(FetchFailed, match="more than"):
        await lenient.get(f"{published.url}/client.json")


async def test_a_compressed_body_is_not_unpacked(
    published: Publisher, lenient: JsonFetcher
) -> None:
    bomb = gzip.compress(b'{"a":"' + b"0" * 20_000_000 + b'"}')
    assert len(bomb) < 64 * 1024
    published.answers["/client.json"] = Answer(bomb, headers={"Content-Encoding": "gzip"})
    with pytest.raises(FetchFailed, match="compressed"):
        await lenient.get(f"{published.url}/client.json")
    assert published.seen[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("kind", ["silent", "dripping"])
async def test_a_slow_body_ends_in_time(kind: str, published: Publisher) -> None:
    over = threading.Event()

    def slowly() -> Iterator[bytes]:
        yield b"{"
        while not over.wait(0.02 if kind == "dripping" else 30):
            yield b" "

    published.answers["/client.json"] = Answer(slowly())
    try:
        async with guarded(f"127.0.0.1:{published.port}", seconds=0.3) as fetcher:
            with pytest.raises(FetchFailed, match=r"did not answer within 0\.3 s"):
                await fetcher.get(f"{published.url}/client.json")
    finally:
        over.set()


async def test_a_slow_resolver_ends_in_time() -> None:
    async def never(host: str, port: int) -> list[str]:
        await anyio.sleep_forever()
        return []

    async with guarded(resolve=never, seconds=0.1) as fetcher:
        with pytest.raises(FetchFailed, match=r"did not answer within 0\.1 s"):
            await fetcher.get(f"https://{NAME}/client.json")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer({}, 404), "status 404"),
        (Answer({}, 500), "status 500"),
        (Answer({}, 206), "status 206"),
        (Answer(b"<html>", headers={"Content-Type": "text/html"}), "did not send JSON"),
        (Answer(b"{}", headers={"Content-Type": "text/json"}), "did not send JSON"),
        (Answer(b"{"), "valid JSON"),
        (Answer(b"[" * 60_000), "valid JSON"),
        (Answer([1]), "a JSON object"),
    ],
)
async def test_what_is_not_a_json_object_is_refused(
    answer: Answer, reason: str, published: Publisher, lenient: JsonFetcher
) -> None:
    published.answers["/client.json"] = answer
    with pytest.raises(FetchFailed, match=reason):
        await lenient.get(f"{published.url}/client.json")


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Cache-Control": "max-age=600"}, 600),
        ({"Cache-Control": "public, Max-Age=600, must-revalidate", "Age": "100"}, 500),
        ({"Cache-Control": "max-age=10", "Age": "100"}, 0),
        ({"Cache-Control": "no-store, max-age=600"}, 0),
        ({"Cache-Control": "no-cache"}, 0),
        ({"Cache-Control": "max-age=-1"}, None),
        ({"Cache-Control": "max-age=" + "9" * 5000}, None),
    ],
)
async def test_how_long_an_answer_may_be_kept(
    headers: dict[str, str], seconds: float | None, published: Publisher, lenient: JsonFetcher
) -> None:
    published.answers["/client.json"] = Answer({}, headers=headers)
    assert (await lenient.get(f"{published.url}/client.json")).fresh_seconds == seconds


async def test_json_of_a_kind_of_its_own_is_json(
    published: Publisher, lenient: JsonFetcher
) -> None:
    kind = {"Content-Type": "application/client+json; charset=utf-8"}
    published.answers["/client.json"] = Answer({"a": 1}, headers=kind)
    assert (await lenient.get(f"{published.url}/client.json")).body == {"a": 1}


def test_nothing_heavy_is_loaded_before_something_is_fetched() -> None:
    code = (
        "import sys, toolgate.identity.oauth.client_documents;"
        "print({'httpx2', 'joserfc', 'cryptography'} & sys.modules.keys())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENT
    )
    assert done.stdout.strip() == "set()"

"""Headers as proxies, browsers and attackers send them: two hosts, odd cookies, odd white space."""

from typing import Any

import httpx2
import pytest
from tests.transports.conftest import Web
from tests.transports.mcp_requests import tool_call

from toolgate.transports.asgi import cookies_of
from toolgate.transports.connection.heads import RAW_HEAD, raw_key_of, split_credential

pytestmark = pytest.mark.anyio

ODD_SPACE = [b"\xa0", b"\x85", b"\x0b", b"\x0c", b"\x1c", b"\x1d", b"\x1e", b"\x1f", b"\x00"]


def ids(value: bytes) -> str:
    return value.hex()


def pieces(key: str, odd: bytes) -> list[bytes]:
    return [key.encode() + odd, odd + key.encode(), odd + key.encode() + odd]


@pytest.mark.parametrize("odd", ODD_SPACE, ids=ids)
async def test_a_key_with_odd_white_space_around_it_is_no_key(web: Web, odd: bytes) -> None:
    for given in pieces(web.keys["admin"], odd):
        headers: Any = {"Authorization": b"Bearer " + given}
        async with web.client(None) as client:
            assert (await client.get("/v1/tools", headers=headers)).status_code == 401


@pytest.mark.parametrize("space", ["", " ", "\t", " \t "])
async def test_the_white_space_of_http_around_a_key_is_none_of_it(web: Web, space: str) -> None:
    given = f"{space}Bearer {space}{web.keys['admin']}{space}"
    async with web.client(None, Authorization=given) as client:
        assert (await client.get("/v1/tools")).status_code == 200


@pytest.mark.parametrize("odd", ODD_SPACE, ids=ids)
def test_a_credential_is_cut_out_of_a_known_head_as_it_is(odd: bytes) -> None:
    for given in pieces("the-key", odd):
        head = b"POST /mcp HTTP/1.1\r\nAuthorization: Bearer " + given + b" \r\n\r\n"
        found = split_credential(head)
        assert found is not None
        assert found[1] == given.decode("latin-1")


async def test_two_hosts_are_a_bad_request(web: Web) -> None:
    hosts = [("Host", "127.0.0.1"), ("Host", "127.0.0.1")]
    key = ("Authorization", f"Bearer {web.keys['admin']}")
    async with web.client(None) as client:
        for path in ("/v1/tools", "/healthz", "/mcp", "/nothing"):
            for headers in ([*hosts, key], hosts, [hosts[0], ("Host", "evil.example"), key]):
                request = httpx2.Request("GET", f"http://127.0.0.1{path}", headers=headers)
                answer = await client.send(request)
                assert answer.status_code == 400
                assert answer.json() == {
                    "error": "The header Host is there more than once. Send one."
                }


@pytest.mark.parametrize("name", [b"proxy-connection", b"transfer-encoding", b"expect", b"upgrade"])
def test_a_head_that_says_how_the_connection_goes_on_is_never_known(name: bytes) -> None:
    raw = b"POST /mcp HTTP/1.1\r\nAuthorization: Bearer k\r\nContent-Length: \r\n"
    scope: dict[str, Any] = {
        "http_version": "1.1",
        "headers": [(b"authorization", b"Bearer k"), (b"content-length", b"2")],
        RAW_HEAD: (None, raw + b"\r\n"),
    }
    assert raw_key_of(scope) is not None
    scope["headers"].append((name, b"close"))
    scope[RAW_HEAD] = (None, raw + name + b": close\r\n\r\n")
    assert raw_key_of(scope) is None


def test_quotes_belong_to_a_cookie_only_in_pairs() -> None:
    scope = {"headers": [(b"cookie", b'a="1"; b="2; c="; d=""; e=x"y"')]}
    assert cookies_of(scope) == {"a": "1", "b": '"2', "c": '"', "d": "", "e": 'x"y"'}


async def test_a_routing_header_with_odd_white_space_is_not_taken_for_another(web: Web) -> None:
    asked = tool_call("2026-07-28", "list_collections", {})
    async with web.client() as client:
        headers: Any = {**asked.headers, "mcp-name": b"list_collections\xa0"}
        answer = await client.post("/mcp", json=asked.body, headers=headers)
    assert answer.status_code == 400

"""Clients that describe themselves in a document at the address that is their id."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import pytest
from tests.identity.publisher import Answer, Publisher, publishing

from toolgate.identity.oauth.client_documents import (
    MAX_REMEMBERED,
    ClientDocuments,
    client_from_document,
)
from toolgate.identity.oauth.clients import BadClient, Client
from toolgate.outbound.client import Outbound
from toolgate.outbound.json_fetcher import JsonFetcher

pytestmark = pytest.mark.anyio

ID = "https://app.example/client.json"
BACK = "https://app.example/back"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def published() -> Iterator[Publisher]:
    with publishing() as publisher:
        yield publisher


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def documents(clock: Clock, published: Publisher) -> AsyncIterator[ClientDocuments]:
    async with Outbound([f"127.0.0.1:{published.port}"]) as outbound:
        yield ClientDocuments(JsonFetcher(outbound=outbound), clock=clock)


def publish(published: Publisher, headers: dict[str, str] | None = None, **fields: Any) -> str:
    """Publish a good document with some other fields; its address."""
    client_id = f"{published.url}/client.json"
    document = {"client_id": client_id, "client_name": "App", "redirect_uris": [BACK], **fields}
    published.answers["/client.json"] = Answer(document, headers=headers or {})
    return client_id


async def test_a_client_is_what_its_document_says(
    published: Publisher, documents: ClientDocuments
) -> None:
    redirects = [BACK, "http://127.0.0.1:7/cb", "http://[::1]/cb", "cursor://app/cb", "com.x:/cb"]
    client_id = publish(
        published,
        client_name=" Schöne App ",
        client_uri="https://app.example",
        redirect_uris=redirects,
        token_endpoint_auth_method="none",
        grant_types=["authorization_code"],
        unknown={"is": "ignored"},
    )
    assert await documents.client(client_id) == Client(
        id=client_id, name="Schöne App", redirect_uris=tuple(redirects), uri="https://app.example"
    )


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (None, "app.example"),
        ("", "app.example"),
        ("  ", "app.example"),
        (" App ", "App"),
        ("App\nTrusted", "App Trusted"),
        ("App\u202eexe", "App exe"),
        ("x" * 1000, "x" * 39 + "…"),
    ],
)
def test_a_name_is_fit_to_be_shown(given: str | None, shown: str) -> None:
    document = {"client_id": ID, "client_name": given, "redirect_uris": [BACK]}
    assert client_from_document(ID, document).name == shown


@pytest.mark.parametrize(
    "uri", ["http://app.example", "javascript:alert(1)", "https://", "https://u@a.example", 7, None]
)
def test_a_home_page_that_cannot_be_shown_safely_is_left_out(uri: object) -> None:
    assert (
        client_from_document(ID, {"client_id": ID, "client_uri": uri, "redirect_uris": [BACK]}).uri
        is None
    )


@pytest.mark.parametrize(
    "client_id",
    [
        "",
        "mcp_0123",
        "http://app.example/client.json",
        "ftp://app.example/client.json",
        "https://app.example",
        "https://app.example/",
        "https:///client.json",
        "https://app.example/client.json#part",
        "https://app.example/client.json#",
        "https://user@app.example/client.json",
        "https://user:secret@app.example/client.json",
        "https://@app.example/client.json",
        "https://app.example/./client.json",
        "https://app.example/a/../client.json",
        "https://app.example/a/..",
        "https://app.example/a/%2e%2E/client.json",
        "https://app.example/a/.%2e/client.json",
        "https://app.example/a b",
        "https://app.example\\@evil.example/client.json",
        "https://app.example/a\nb",
        "https://app.example:port/client.json",
        "https://äpp.example/client.json",
        "https://[::1/client.json",
        "https://app.example/" + "a" * 2000,
    ],
)
async def test_an_id_against_the_rules_is_refused_before_anything_is_fetched(
    client_id: str,
) -> None:
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return []

    async with Outbound(resolve=resolve) as outbound:
        with pytest.raises(BadClient, match="client_id must"):
            await ClientDocuments(JsonFetcher(outbound=outbound)).client(client_id)
    assert asked == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "169.254.169.254", "[::1]", "0x7f.1"])
async def test_a_document_on_a_private_address_is_refused(host: str) -> None:
    async with Outbound() as outbound:
        with pytest.raises(BadClient, match=r"could not be fetched: .* has no public address"):
            await ClientDocuments(JsonFetcher(outbound=outbound)).client(
                f"https://{host}/client.json"
            )


async def test_a_document_behind_a_redirect_to_a_private_address_is_refused(
    published: Publisher, documents: ClientDocuments
) -> None:
    client_id = publish(published)
    elsewhere = {"Location": f"{published.url}/inside.json"}
    published.answers["/inside.json"] = published.answers["/client.json"]
    published.answers["/client.json"] = Answer({}, 302, elsewhere)
    with pytest.raises(BadClient, match="redirects are not followed"):
        await documents.client(client_id)
    assert published.asked("/inside.json") == 0


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"client_id": ID + "/"}, "client_id in"),
        ({"client_id": ID.upper()}, "client_id in"),
        ({"client_id": None}, "client_id in"),
        ({"client_id": [ID]}, "client_id in"),
        ({"token_endpoint_auth_method": "client_secret_basic"}, "token_endpoint_auth_method"),
        ({"token_endpoint_auth_method": "client_secret_post"}, "token_endpoint_auth_method"),
        ({"token_endpoint_auth_method": "client_secret_jwt"}, "token_endpoint_auth_method"),
        ({"token_endpoint_auth_method": "private_key_jwt"}, "token_endpoint_auth_method"),
        ({"token_endpoint_auth_method": None}, "token_endpoint_auth_method"),
        ({"client_secret": "everybody reads this"}, "client_secret"),
        ({"client_name": 7}, "client_name"),
        ({"redirect_uris": None}, "redirect_uris"),
        ({"redirect_uris": []}, "redirect_uris"),
        ({"redirect_uris": BACK}, "redirect_uris"),
        ({"redirect_uris": [BACK] * 21}, "redirect_uris"),
        ({"redirect_uris": [BACK, 7]}, "redirect_uris"),
        ({"redirect_uris": [""]}, "redirect_uris"),
        ({"redirect_uris": ["/back"]}, "redirect_uris"),
        ({"redirect_uris": ["https:///back"]}, "redirect_uris"),
        ({"redirect_uris": ["http://app.example/back"]}, "redirect_uris"),
        ({"redirect_uris": ["http://127.0.0.1.evil.example/back"]}, "redirect_uris"),
        ({"redirect_uris": [BACK + "#part"]}, "redirect_uris"),
        ({"redirect_uris": ["https://user@app.example/back"]}, "redirect_uris"),
        ({"redirect_uris": ["https://app.example/\r\nSet-Cookie:a=b"]}, "redirect_uris"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "redirect_uris"),
        ({"redirect_uris": ["JavaScript:alert(1)"]}, "redirect_uris"),
        ({"redirect_uris": ["data:text/html,hello"]}, "redirect_uris"),
        ({"redirect_uris": ["file:///etc/passwd"]}, "redirect_uris"),
        ({"redirect_uris": ["view-source:https://app.example"]}, "redirect_uris"),
    ],
)
def test_a_document_against_the_rules_is_refused(fields: dict[str, Any], reason: str) -> None:
    good: dict[str, Any] = {"client_id": ID, "client_name": "App", "redirect_uris": [BACK]}
    assert client_from_document(ID, good).id == ID
    with pytest.raises(BadClient, match=f"^{reason}"):
        client_from_document(ID, {**good, **fields})


@pytest.mark.parametrize(
    ("headers", "kept"),
    [
        ({}, 60),
        ({"Cache-Control": "no-store"}, 60),
        ({"Cache-Control": "max-age=5"}, 60),
        ({"Cache-Control": "max-age=600"}, 600),
        ({"Cache-Control": "max-age=86400"}, 3600),
    ],
)
async def test_a_document_is_kept_as_long_as_it_says_within_bounds(
    headers: dict[str, str],
    kept: float,
    published: Publisher,
    documents: ClientDocuments,
    clock: Clock,
) -> None:
    client_id = publish(published, headers)
    await documents.client(client_id)
    publish(published, headers, client_name="Another")
    clock.now += kept - 1
    assert (await documents.client(client_id)).name == "App"
    clock.now += 1
    assert (await documents.client(client_id)).name == "Another"
    assert published.asked("/client.json") == 2


@pytest.mark.parametrize("bad", [Answer({}, 500), Answer({"client_id": "another"})])
async def test_a_problem_is_not_kept(
    bad: Answer, published: Publisher, documents: ClientDocuments
) -> None:
    client_id = publish(published)
    good, published.answers["/client.json"] = published.answers["/client.json"], bad
    with pytest.raises(BadClient):
        await documents.client(client_id)
    published.answers["/client.json"] = good
    assert (await documents.client(client_id)).id == client_id


async def test_many_who_ask_at_once_cause_one_fetch(
    published: Publisher, documents: ClientDocuments
) -> None:
    client_id = publish(published)
    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(documents.client, client_id)
    assert published.asked("/client.json") == 1


async def test_what_is_remembered_is_bounded(
    published: Publisher, documents: ClientDocuments, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MAX_REMEMBERED <= 10_000
    monkeypatch.setattr("toolgate.identity.oauth.client_documents.MAX_REMEMBERED", 3)
    for number in range(5):
        path = f"/{number}.json"
        client_id = f"{published.url}{path}"
        published.answers[path] = Answer({"client_id": client_id, "redirect_uris": [BACK]})
        await documents.client(client_id)
    assert len(documents._remembered) == 3  # pyright: ignore[reportPrivateUsage]
    await documents.client(f"{published.url}/4.json")
    await documents.client(f"{published.url}/0.json")
    assert (published.asked("/4.json"), published.asked("/0.json")) == (1, 2)

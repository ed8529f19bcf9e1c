"""Clients that describe themselves in a document: running servers, the official client, HTTPS."""

import secrets
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from tests.clients.python_oauth import (
    REDIRECT,
    USER_TOOLS,
    NotSignedIn,
    Person,
    connected,
    revoke,
    tools_of,
)
from tests.identity.certificates import AUTHORITY, contexts
from tests.identity.oauth.flow import PREFIX, Flow, hidden
from tests.identity.pages import browsing
from tests.identity.publisher import Answer, Publisher, publishing
from tests.identity.records import grants_of
from tests.servers import Server, running_server

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, slots=True)
class Home:
    """Where clients publish their documents, over HTTPS, and who vouches for the server."""

    publisher: Publisher
    trusted: str

    def address(self, path: str) -> str:
        return f"https://localhost:{self.publisher.port}{path}"

    def publish(self, path: str = "/client.json", **fields: Any) -> str:
        """Publish a good document with some other fields; its address."""
        client_id = self.address(path)
        document = {"client_id": client_id, "client_name": "Described", "redirect_uris": [REDIRECT]}
        self.publisher.answers[path] = Answer(document | fields)
        return client_id


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder = tmp_path_factory.mktemp("certificates")
    tls, _ = contexts("localhost", folder)
    with publishing(tls) as publisher:
        yield Home(publisher, str(folder / AUTHORITY))


@contextmanager
def started(home: Home, folders: pytest.TempPathFactory, **settings: Any) -> Generator[Server]:
    """A server that trusts the authority of this test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", home.trusted)
        with running_server(folders, **settings) as server:
            yield server


@pytest.fixture(scope="module")
def gate(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    allowed = {"outbound__allow": f"localhost:{home.publisher.port}"}
    with started(home, tmp_path_factory, **allowed) as server:
        yield server


@pytest.fixture(scope="module")
def guarded(home: Home, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """As servers are unless told otherwise."""
    with started(home, tmp_path_factory) as server:
        yield server


async def asked(server: Server, client_id: str, request_id: str, **changed: str) -> httpx2.Response:
    """What the browser sees that a client sends to us."""
    async with browsing(request_id) as browser:
        question = Flow(browser, client_id, REDIRECT).question(**changed)
        return await browser.get(f"{server.url}{PREFIX}/authorize", params=question)


async def test_the_python_client_goes_the_whole_way(gate: Server, home: Home) -> None:
    client_id = home.publish()
    person = Person({"key": gate.key_of("user")})
    async with connected(gate, person, document=client_id) as (client, provider):
        assert await tools_of(client) == USER_TOOLS
        assert person.client is not None
        assert person.client.client_id == client_id, "it did not register"
        provider.context.token_expiry_time = time.time() - 1
        assert await tools_of(client) == USER_TOOLS
        assert (person.sign_ins, len(person.tokens)) == (1, 2), "refreshed without the person"
    await revoke(gate, person)
    async with connected(gate, person, document=client_id) as (client, _):
        assert await tools_of(client) == USER_TOOLS
    assert person.sign_ins == 2
    assert home.publisher.asked("/client.json") == 1, "it is remembered for a while"


async def test_the_consent_page_says_whose_document_it_is(gate: Server, home: Home) -> None:
    client_id = home.publish("/shown.json", client_name="Shown <b>")
    async with browsing() as browser:
        question = Flow(browser, client_id, REDIRECT).question()
        url = f"{gate.url}{PREFIX}/authorize"
        page = await browser.get(url, params=question, follow_redirects=True)
        typed = {**hidden(page), "key": gate.key_of("user")}
        form = page.url.join(f"{PREFIX}/sign-in")
        page = await browser.post(form, data=typed, follow_redirects=True)
    assert "Shown &lt;b&gt;" in page.text
    assert f"as <strong>localhost:{home.publisher.port}</strong> describes it" in page.text


@pytest.mark.parametrize(
    ("path", "fields", "told"),
    [
        ("/other.json", {"client_id": "https://app.example/c.json"}, "must be the address it is"),
        ("/secret.json", {"client_secret": "s"}, "client_secret must not be"),
        ("/nowhere.json", {"redirect_uris": []}, "redirect_uris must be a list"),
    ],
)
async def test_a_document_that_breaks_a_rule_is_refused_on_a_page(
    gate: Server, home: Home, path: str, fields: dict[str, Any], told: str
) -> None:
    await refused(gate, home.publish(path, **fields), f"document{path}", told)


async def test_a_redirect_is_not_followed(gate: Server, home: Home) -> None:
    """Else a public address could lead the server to a private one."""
    target = home.publish("/inside.json")
    home.publisher.answers["/moved.json"] = Answer("", 302, {"Location": target})
    await refused(gate, home.address("/moved.json"), "document-moved", "could not be fetched")
    assert home.publisher.asked("/inside.json") == 0


async def test_the_answer_goes_only_where_the_document_says(gate: Server, home: Home) -> None:
    client_id = home.publish("/elsewhere.json")
    other = "https://attacker.example/callback"
    page = await asked(gate, client_id, "document-redirect", redirect_uri=other)
    assert page.status_code == 400
    assert "an address that it did not register" in page.text
    assert gate.audit_rows("document-redirect")[0]["rule"] == "oauth-bad-redirect"


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("{home}", "must use port 443"),
        ("http://127.0.0.1:{port}/client.json", "must be an address that begins with https://"),
        ("https://localhost/client.json", "has no public address"),
        ("https://127.0.0.1/client.json", "has no public address"),
        ("https://[::ffff:127.0.0.1]/client.json", "has no public address"),
        ("https://169.254.169.254/client.json", "has no public address"),
        ("https://10.0.0.1/client.json", "has no public address"),
    ],
)
async def test_a_document_inside_is_not_fetched_unless_allowed(
    guarded: Server, home: Home, address: str, told: str
) -> None:
    before = len(home.publisher.seen)
    inside = address.format(home=home.publish("/guarded.json"), port=home.publisher.port)
    await refused(guarded, inside, f"inside-{secrets.token_hex(4)}", told)
    assert len(home.publisher.seen) == before


async def refused(server: Server, client_id: str, request_id: str, told: str) -> None:
    """A plain page, a row in the audit, and no grant."""
    request_id = request_id.replace("/", "-")
    page = await asked(server, client_id, request_id)
    assert page.status_code == 400
    assert page.headers["content-type"].startswith("text/html")
    assert told in page.text
    [row] = server.audit_rows(request_id)
    assert (row["rule"], row["decision"]) == ("oauth-unknown-client", "deny")


async def test_the_python_client_is_refused_by_the_guard(guarded: Server, home: Home) -> None:
    person = Person({"key": guarded.key_of("user")}, "guarded-client")
    with pytest.RaisesGroup(NotSignedIn, flatten_subgroups=True, allow_unwrapped=True):
        async with connected(guarded, person, document=home.publish("/guarded.json")):
            pytest.fail("nobody has agreed")
    [row] = guarded.audit_rows("guarded-client")
    assert row["rule"] == "oauth-unknown-client"
    assert (grants_of(guarded), home.publisher.asked("/guarded.json")) == (0, 0)


async def test_without_a_way_out_clients_fall_back_to_registration(
    home: Home, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """By setting: the official client reads the metadata, and registers."""
    with started(home, tmp_path_factory, oauth__client_documents=False) as server:
        address = home.publish("/offline.json")
        person = Person({"key": server.key_of("user")})
        async with connected(server, person, document=address) as (client, _):
            assert await tools_of(client) == USER_TOOLS
        assert person.client is not None
        assert person.client.client_id.startswith("mcp_")
        page = await asked(server, address, "offline")
    assert page.status_code == 400
    assert "This client is not known here." in page.text
    assert home.publisher.asked("/offline.json") == 0


@pytest.mark.parametrize("path", ["", "/mcp", "/backend-manager/mcp"])
async def test_the_metadata_says_that_documents_are_read(guarded: Server, path: str) -> None:
    with guarded.client(None) as http:
        told = http.get(f"/.well-known/oauth-authorization-server{path}").json()
    assert told["client_id_metadata_document_supported"] is True

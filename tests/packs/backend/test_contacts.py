"""Marketing contacts: which addresses are refused, what is kept, what consent means."""

import json
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from disposable_email_domains import blocklist
from tests.asgi_server import served_in_thread

from toolgate.packs.backend.marketing.addresses import address_of, name_in
from toolgate.ports.documents import Create
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

MISSPELLED = {"gmial.com", "hotmai.com", "hotmial.com"}
"""On that list too, where they are told as misspelled."""
DISPOSABLE = sorted(random.Random(19).sample(sorted(blocklist - MISSPELLED), 50))


@asynccontextmanager
async def kit_with(folder: Path, **settings: Any) -> AsyncIterator[Kit]:
    async with opened_kit(folder, packs__enabled=["backend"], **settings) as opened:
        yield opened


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    async with kit_with(tmp_path, database__url=database_url) as opened:
        yield opened


@pytest.fixture
async def one(tmp_path: Path) -> AsyncIterator[Kit]:
    """Where nothing depends on the database."""
    async with kit_with(tmp_path) as opened:
        yield opened


def world(kit: Kit) -> Any:
    return kit.app.worlds["backend"].world


async def refusal(kit: Kit, email: str, **more: Any) -> str:
    outcome = await kit.call("create_contact", email=email, **more)
    assert outcome.status == 400, outcome.text
    assert outcome.body == {"error": outcome.text}
    assert await world(kit).contacts.list.page(None, 10) == []
    return outcome.text


async def test_a_contact_is_kept_with_all_that_was_said(kit: Kit) -> None:
    given = {"firstName": "Ada", "lastName": "Byron", "source": "fair", "tags": ["vip"]}
    outcome = await kit.call("create_contact", email=" Ada@Example.COM", **given)
    assert outcome.body == {
        "success": True,
        "providers": {"list": {"success": True, "created": True}},
        "validation": {
            "valid": True,
            "checks": {
                name: {"valid": True}
                for name in ("format", "disposable", "corporate", "localPart", "typo")
            },
        },
        "nameInferred": None,
    }
    again = await kit.call("create_contact", email="ada@example.com", lastName="Lovelace")
    assert again.body["providers"]["list"] == {"success": True, "created": False}
    [kept] = await world(kit).contacts.list.page(None, 10)
    contact = kept.contact
    assert (contact.email, contact.first_name, contact.last_name) == (
        "ada@example.com",
        "Ada",
        "Lovelace",
    )
    assert (contact.source, list(contact.tags), kept.pending) == ("fair", ["vip"], False)


NO_ADDRESSES = [
    *("", "jane", "jane@", "@x.io", "jane@x", "ja ne@x.io", "jane@x..io", ".jane@x.io"),
    *("jane.@x.io", "jane@-x.io", "jane@x.1", "a@b@x.io", "jane@x.io\r\nBcc: evil@x.io"),
    *(f"{'a' * 65}@x.io", "<jane@x.io>", "jane@[127.0.0.1]", "jané@x.io", "jane@x.io,b@x.io"),
]


@pytest.mark.parametrize("email", NO_ADDRESSES)
async def test_what_is_no_address_is_refused_also_without_validation(one: Kit, email: str) -> None:
    assert await refusal(one, email) == "Invalid email format"
    assert await refusal(one, email, skipValidation=True) == "Invalid email format"
    deleted = await one.call("delete_contact", email=email)
    assert (deleted.status, deleted.text) == (400, "Invalid email format")


async def test_fifty_disposable_domains_are_refused(one: Kit) -> None:
    for domain in [*DISPOSABLE, f"deep.below.{DISPOSABLE[0]}", "mailinator.com", "yopmail.com"]:
        told = await refusal(one, f"jane@{domain.upper()}")
        assert told == f"Disposable email domain not allowed: {domain}"


@pytest.mark.parametrize(
    ("email", "told"),
    [
        ("jane@facebook.com", "Corporate/social-media domain not allowed: facebook.com"),
        (
            "jane@mail.instagram.com",
            "Corporate/social-media domain not allowed: mail.instagram.com",
        ),
        ("noreply@x.io", "Blocked email local part: noreply"),
        ("No-Reply@x.io", "Blocked email local part: no-reply"),
        ("test+1@x.io", "Blocked email local part: test+1"),
        ("noreply@facebook.com", "Corporate/social-media domain not allowed: facebook.com"),
    ],
)
async def test_other_refusals_and_their_order(one: Kit, email: str, told: str) -> None:
    assert await refusal(one, email) == told


async def test_without_validation_only_the_format_counts(one: Kit) -> None:
    for email in ("jane@mailinator.com", "jane@facebook.com", "noreply@gmial.com"):
        done = await one.call("create_contact", email=email, skipValidation=True)
        assert done.body["success"] is True
        assert done.body["validation"] == {"valid": True, "checks": {"format": {"valid": True}}}


@pytest.mark.parametrize(
    ("domain", "meant"),
    [
        ("gmial.com", "gmail.com"),
        ("gmail.con", "gmail.com"),
        ("hotmial.com", "hotmail.com"),
        ("yaho.com", "yahoo.com"),
        ("outlok.co", "outlook.com"),
        ("gmail.com", None),
        ("ymail.com", None),
        ("example.com", None),
        ("acme.com", None),
    ],
)
async def test_a_misspelled_domain_is_pointed_out_and_added(
    one: Kit, domain: str, meant: str | None
) -> None:
    done = await one.call("create_contact", email=f"jane@{domain}")
    wanted = {"valid": True} if meant is None else {"valid": False, "suggestion": f"jane@{meant}"}
    assert done.body["validation"]["checks"]["typo"] == wanted
    assert done.body["success"] is True


@pytest.mark.parametrize(
    ("email", "name"),
    [
        ("jane.doe@x.io", ("Jane", "Doe")),
        ("JANE_DOE99+news@x.io", ("Jane", "Doe")),
        ("mary-ann.watson@x.io", ("Mary", "Watson")),
        ("alex@x.io", ("Alex", None)),
        ("jdoe@x.io", None),
        ("jd1984@x.io", None),
        ("sales@x.io", None),
        ("x.y@x.io", None),
    ],
)
def test_a_name_is_read_out_of_an_address(email: str, name: tuple[str, str | None] | None) -> None:
    address = address_of(email)
    assert address is not None
    found = name_in(address)
    assert (None if found is None else (found.first, found.last)) == name


async def test_a_name_is_inferred_only_where_none_is_given(one: Kit) -> None:
    inferred = await one.call("create_contact", email="grace.hopper@x.io")
    assert inferred.body["nameInferred"] == {"firstName": "Grace", "lastName": "Hopper"}
    given = await one.call("create_contact", email="alan.turing@x.io", firstName="A")
    assert given.body["nameInferred"] is None
    kept = {one.contact.email: one.contact for one in await world(one).contacts.list.page(None, 9)}
    assert (kept["grace.hopper@x.io"].last_name, kept["alan.turing@x.io"].last_name) == (
        "Hopper",
        None,
    )


async def test_a_deleted_contact_revokes_consent_and_cannot_be_added_again(kit: Kit) -> None:
    documents = kit.app.documents.of("backend")
    async with kit.app.gate.database.transaction() as tx:
        await documents.write(tx, Create("users", "u1", {"auth": {"email": "jane@x.io"}}))
    await kit.call("create_contact", email="jane@x.io")
    gone = await kit.call("delete_contact", email="Jane@X.io")
    assert gone.body == {"success": True, "providers": {"list": {"success": True, "removed": True}}}
    marketing = (await documents.get("users", "u1") or {})["consent"]["marketing"]
    assert (marketing["status"], marketing["source"]) == ("revoked", "admin")
    assert not await world(kit).consent.allows("jane@x.io", "newsletter")
    assert await world(kit).contacts.list.page(None, 10) == []
    for more in ({}, {"skipValidation": True}):
        told = await refusal(kit, "jane@x.io", **more)
        assert told == "Marketing consent was revoked: jane@x.io"


async def test_an_unknown_address_is_answered_the_same_twice(kit: Kit) -> None:
    wanted = {"success": True, "providers": {"list": {"success": True, "removed": False}}}
    for _ in "ab":
        outcome = await kit.call("delete_contact", email="nobody@x.io")
        assert (outcome.status, outcome.body) == (200, wanted)
    assert not await world(kit).consent.allows("nobody@x.io")


async def test_a_user_who_revoked_is_not_added(kit: Kit) -> None:
    record = {"email": "Jane@x.io", "consent": {"marketing": {"status": "revoked"}}}
    async with kit.app.gate.database.transaction() as tx:
        await kit.app.documents.of("backend").write(tx, Create("users", "u1", record))
    assert await refusal(kit, "Jane@x.io") == "Marketing consent was revoked: jane@x.io"


async def test_what_was_done_is_in_the_change_log_of_its_call(kit: Kit) -> None:
    await kit.call("create_contact", email="jane@x.io")
    [row] = [one for one in await kit.audit_rows() if one["tool_name"] == "create_contact"]
    assert row["error_type"] is None
    assert "jane@x.io" not in json.dumps({name: str(value) for name, value in row.items()})


class SendGrid:
    """A stub of SendGrid's marketing contacts; asynchronous there, at once here."""

    def __init__(self) -> None:
        self.contacts: dict[str, dict[str, Any]] = {}
        self.status: int | None = None
        self.requests = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = (await receive()).get("body", b"")
        self.requests += 1
        status, answer = self._answer(scope, json.loads(body) if body else None)
        await send({"type": "http.response.start", "status": status, "headers": []})
        content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        await send({"type": "http.response.body", "body": content})

    def _answer(self, scope: Any, body: Any) -> Any:
        if dict(scope["headers"]).get(b"authorization") != b"Bearer SG.key":
            return 401, {"errors": [{"message": "authorization required"}]}
        if self.status:
            return self.status, b"<html>"
        match scope["method"], scope["path"]:
            case "PUT", "/v3/marketing/contacts":
                self.contacts |= {one["email"]: one for one in body["contacts"]}
                return 202, {"job_id": "job-1"}
            case "POST", "/v3/marketing/contacts/search/emails":
                found = {one: self.contacts[one] for one in body["emails"] if one in self.contacts}
                if not found:
                    return 404, {"errors": [{"message": "no contacts found"}]}
                return 200, {"result": {one: {"contact": {"id": f"id-{one}"}} for one in found}}
            case "DELETE", "/v3/marketing/contacts":
                email = scope["query_string"].decode().removeprefix("ids=id-").replace("%40", "@")
                del self.contacts[email]
                return 202, {"job_id": "job-2"}
        return 404, {}


@pytest.fixture
def sendgrid() -> Iterator[tuple[SendGrid, str]]:
    stub = SendGrid()
    with served_in_thread(stub) as url:
        yield stub, url


def to(sendgrid: tuple[SendGrid, str]) -> dict[str, Any]:
    return {
        "contacts__url": "sendgrid:",
        "contacts__sendgrid_key": "SG.key",
        "contacts__sendgrid_url": sendgrid[1],
    }


async def test_sendgrid_has_a_copy(
    tmp_path: Path, database_url: str, sendgrid: tuple[SendGrid, str]
) -> None:
    stub, _ = sendgrid
    async with kit_with(tmp_path, database__url=database_url, **to(sendgrid)) as kit:
        added = await kit.call("create_contact", email="jane.doe@x.io")
        assert added.body["success"] is True
        assert added.body["providers"]["sendgrid"] == {"success": True, "jobId": "job-1"}
        wanted = {"email": "jane.doe@x.io", "first_name": "Jane", "last_name": "Doe"}
        assert stub.contacts == {"jane.doe@x.io": wanted}
        for was_there in (True, False):
            gone = await kit.call("delete_contact", email="jane.doe@x.io")
            assert gone.body["providers"]["sendgrid"] == {"success": True, "removed": was_there}
        assert stub.contacts == {}
        assert await world(kit).contacts.list.waiting(None, 10) == []


@pytest.mark.parametrize(
    ("status", "told"),
    [
        (401, "SendGrid refuses the key. Give it the permission Marketing."),
        (429, "SendGrid takes no more requests now. Try again later."),
        (500, "SendGrid answers with status 500. Try again later."),
        (202, "SendGrid's answer cannot be read."),
    ],
)
async def test_half_a_failure_is_told_and_made_good_later(
    tmp_path: Path, sendgrid: tuple[SendGrid, str], status: int, told: str
) -> None:
    stub, _ = sendgrid
    stub.status = status
    async with kit_with(tmp_path, **to(sendgrid)) as kit:
        added = await kit.call("create_contact", email="jane@x.io")
        assert added.body["success"] is False
        assert added.body["providers"]["list"] == {"success": True, "created": True}
        assert added.body["providers"]["sendgrid"] == {"success": False, "error": told}
        assert [one.contact.email for one in await world(kit).contacts.list.waiting(None, 9)]
        assert await world(kit).contacts.sync() == {"told": 0, "failed": 1}
        stub.status = None
        assert await world(kit).contacts.sync() == {"told": 1, "failed": 0}
        assert list(stub.contacts) == ["jane@x.io"]
        assert await world(kit).contacts.sync() == {"told": 0, "failed": 0}


async def test_consent_is_revoked_although_the_provider_is_gone(tmp_path: Path) -> None:
    gone = (SendGrid(), "http://127.0.0.1:9")
    async with kit_with(tmp_path, **to(gone)) as kit:
        removed = await kit.call("delete_contact", email="jane@x.io")
        assert removed.body == {
            "success": False,
            "providers": {
                "list": {"success": True, "removed": False},
                "sendgrid": {
                    "success": False,
                    "error": "SendGrid cannot be reached. Try again later.",
                },
            },
        }
        assert not await world(kit).consent.allows("jane@x.io")
        [waiting] = await world(kit).contacts.list.waiting(None, 9)
        assert (waiting.contact.email, waiting.removed) == ("jane@x.io", True)


async def test_a_dry_run_asks_nobody_and_keeps_nothing(
    tmp_path: Path, sendgrid: tuple[SendGrid, str]
) -> None:
    async with kit_with(tmp_path, **to(sendgrid)) as kit:
        await kit.send("create_contact", {"email": "jane@x.io"}, dry_run=True)
        await kit.send("delete_contact", {"email": "jane@x.io"}, dry_run=True)
        assert sendgrid[0].requests == 0
        assert await world(kit).contacts.list.get("jane@x.io") is None
        assert await world(kit).consent.allows("jane@x.io")


class Network:
    """A resolver and a mailbox service: what they are asked, and what they say."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer: Any = {}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append(f"{scope['path']}?{scope['query_string'].decode()}")
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(self.answer).encode()})


@pytest.mark.parametrize(
    ("answer", "status", "told"),
    [
        ({"Status": 0, "Answer": [{"data": "10 mx.x.io."}]}, 200, None),
        ({"Status": 3}, 400, "Email domain has no mail server: x.io"),
        ({"Status": 0}, 400, "Email domain has no mail server: x.io"),
        ({"Status": 2}, 503, "A server that this tool asks"),
    ],
)
async def test_dns_is_asked_only_where_it_is_switched_on(
    tmp_path: Path, answer: Any, status: int, told: str | None
) -> None:
    network = Network()
    network.answer = answer
    with served_in_thread(network) as url:
        async with kit_with(tmp_path, contacts__dns_url=f"{url}/resolve") as kit:
            skipped = await kit.call("create_contact", email="j@x.io", skipValidation=True)
            assert (skipped.status, network.asked) == (200, [])
            outcome = await kit.call("create_contact", email="jane@x.io")
            assert outcome.status == status
            assert told is None or told in outcome.text
            assert network.asked[0] == "/resolve?name=x.io&type=MX"


async def test_the_mailbox_is_asked_only_where_it_is_switched_on(tmp_path: Path) -> None:
    network = Network()
    with served_in_thread(network) as url:
        settings = {"contacts__mailbox_key": "secret-key", "contacts__mailbox_url": url}
        async with kit_with(tmp_path, **settings) as kit:
            for answer, status in (("invalid", 400), ("valid", 200), ("unknown", 200), (5, 503)):
                network.answer = {"status": answer}
                outcome = await kit.call("create_contact", email="jane@x.io")
                assert outcome.status == status
                assert "secret-key" not in outcome.text
        assert network.asked[0] == "/v2/validate?api_key=secret-key&email=jane%40x.io"

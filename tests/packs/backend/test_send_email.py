"""send_email through the gate, with a real SMTP server: who gets what, once, and what is told."""

import email
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from email.header import decode_header, make_header
from pathlib import Path
from typing import Any

import pytest
from tests.smtp_server import Inbox, smtp_server

from toolgate.gate.principal import Role, of_role
from toolgate.packs.backend.dates import FORMS
from toolgate.packs.backend.mail.queue import Status
from toolgate.packs.backend.mail.sending import Sending
from toolgate.packs.backend.world import BackendWorld
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

CONTACT = "contact@acme.example"


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with smtp_server() as running:
        yield running


@pytest.fixture
async def kit(tmp_path: Path, database_url: str, inbox: Inbox) -> AsyncIterator[Kit]:
    async with opened_mail_kit(tmp_path, inbox.url, database__url=database_url) as opened:
        yield opened


def opened_mail_kit(folder: Path, url: str, **more: Any) -> Any:
    fixed = {"packs__enabled": ["backend"], "brand__contact": CONTACT, "brand__name": "Acme"}
    return opened_kit(folder, demo_data=True, mail__url=url, **(fixed | more))


def world(kit: Kit) -> BackendWorld:
    return kit.app.worlds["backend"].world


def at(kit: Kit, moment: datetime) -> Sending:
    """Sending with a clock of its own."""
    sending = world(kit).mail.sending
    return Sending(
        sending.mailer, sending.queue, sending.documents, sending.database, lambda: moment
    )


async def record(kit: Kit, body: dict[str, Any]) -> dict[str, Any]:
    found = await world(kit).documents.get("emails", body["response"]["messageId"])
    assert found is not None
    return found


async def sent(kit: Kit, **arguments: Any) -> dict[str, Any]:
    outcome = await kit.call("send_email", **({"subject": "Hello", "copy": False} | arguments))
    assert outcome.status == 200, outcome.text
    return outcome.body


async def refused(kit: Kit, inbox: Inbox, **arguments: Any) -> tuple[int, str]:
    """A call that must fail and send nothing."""
    before = len(inbox.mails)
    outcome = await kit.call("send_email", **arguments)
    assert outcome.status >= 400
    assert len(inbox.mails) == before
    return outcome.status, outcome.text


async def test_each_person_gets_it_once_and_nobody_sees_bcc(kit: Kit, inbox: Inbox) -> None:
    body = await sent(
        kit,
        to=["A@x.example", "a@x.example", {"email": "b@x.example", "name": "Bea"}],
        cc=["b@X.example", "c@x.example"],
        bcc=["C@x.example", "d@x.example"],
    )
    assert inbox.everyone == ["A@x.example", "b@x.example", "c@x.example", "d@x.example"]
    for mail in inbox.mails:
        assert "bcc" not in mail.message
        assert b"d@x.example" not in mail.content.split(b"\r\n\r\n")[0].replace(b"token=", b"")
        assert str(mail.message["to"]) == "A@x.example, Bea <b@x.example>"
        assert str(mail.message["cc"]) == "c@x.example"
    assert body["status"] == "sent"
    assert [one["email"] for one in body["options"]["bcc"]] == ["d@x.example"]
    kept = await record(kit, body)
    assert (kept["status"], kept["options"]["subject"]) == ("sent", "Hello")


async def test_a_uid_is_the_address_in_the_users_record(kit: Kit, inbox: Inbox) -> None:
    body = await sent(kit, to=["_test-basic", "nobody"])
    (mail,) = inbox.mails
    assert str(mail.message["to"]) == "Alex <test-basic@example.com>"
    assert body["options"]["skipped"] == ["nobody"]


async def test_one_550_among_three_is_named_and_two_get_it(kit: Kit, inbox: Inbox) -> None:
    inbox.of_recipient = {"b@x.example": "550 5.1.1 no such user"}
    body = await sent(kit, to=["a@x.example", "b@x.example", "c@x.example"])
    assert inbox.everyone == ["a@x.example", "c@x.example"]
    told = {one["email"]: (one["outcome"], one["words"]) for one in body["response"]["recipients"]}
    assert told["b@x.example"] == ("refused", "550 5.1.1 no such user")
    assert (await record(kit, body))["response"]["recipients"] == body["response"]["recipients"]


async def test_the_contact_gets_a_copy_unless_told_otherwise(kit: Kit, inbox: Inbox) -> None:
    await kit.call("send_email", to="a@x.example", subject="With")
    assert inbox.everyone == ["a@x.example", CONTACT]
    assert str(inbox.mails[0].message["cc"]) == f"Acme <{CONTACT}>"
    inbox.mails.clear()
    await sent(kit, to="a@x.example")
    assert inbox.everyone == ["a@x.example"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"subject": "x"}, "Parameter to is required with at least one email"),
        ({"to": [], "subject": "x"}, "Parameter to is required with at least one email"),
        (
            {"to": "nobody", "subject": "x"},
            "Parameter to is required with at least one email; no user nobody with an email was "
            "found",
        ),
        (
            {"to": [f"no{n}" for n in range(8)], "subject": "x"},
            "Parameter to is required with at least one email; no user no0, no1, no2, no3, no4 and "
            "3 more with an email was found",
        ),
        ({"to": "a@x.example"}, "Parameter subject is required"),
        ({"to": "a@x.example", "subject": ""}, "Parameter subject is required"),
        (
            {"to": "a@x.example", "subject": "x\r\nBcc: evil@x.example"},
            "subject has a line break or another control character",
        ),
        (
            {"to": "a@x.example\r\nBcc: evil@x.example", "subject": "x"},
            "to has a line break or another control character",
        ),
        (
            {"to": [{"email": "a@x.example", "name": "A\r\nBcc: e@x.example"}], "subject": "x"},
            "to[0] has a line break or another control character",
        ),
        ({"to": "a@x.example", "cc": ["@"], "subject": "x"}, "cc[0] is not an email address"),
        (
            {"to": "a@x.example", "subject": "x", "sender": "bob"},
            "sender must be one of: orders, hello, account, marketing, security, newsletter, "
            "internal",
        ),
        (
            {"to": "a@x.example", "subject": "x", "sendAt": "tomorow"},
            f"sendAt {FORMS}",
        ),
        (
            {
                "to": "a@x.example",
                "subject": "x",
                "data": {"content": {"button": {"text": "x", "url": "javascript:alert(1)"}}},
            },
            "data.content.button.url must be a URL that begins with https://, http:// or mailto:",
        ),
    ],
)
async def test_bad_input_is_400_in_one_sentence_and_sends_nothing(
    kit: Kit, inbox: Inbox, arguments: dict[str, Any], message: str
) -> None:
    assert await refused(kit, inbox, **arguments) == (400, message)


async def test_what_callers_write_is_escaped(kit: Kit, inbox: Inbox) -> None:
    content = {
        "title": "<script>alert(1)</script>",
        "message": "Tom & <b>Jerry</b>\n\nBye",
        "button": {"text": "<i>Go</i>", "url": 'https://x.example/?a=1&b="'.replace('"', "2")},
        "discountCode": "SAVE<5>",
    }
    for template in ("card", "plain", "order", "feedback", "no-such-template"):
        await sent(
            kit, to="a@x.example", subject=template, template=template, data={"content": content}
        )
    for mail in inbox.mails:
        html = mail.part("html")
        assert "<script>" not in html
        assert "<b>Jerry</b>" not in html
        assert "Tom &amp; &lt;b&gt;Jerry&lt;/b&gt;" in html
        assert "&lt;i&gt;Go&lt;/i&gt;" in html
        assert "Tom & <b>Jerry</b>" in mail.part("plain")
    body = await sent(kit, to="a@x.example", subject="again", template="no-such-template")
    assert body["options"]["template"] == "card"


async def test_html_takes_the_place_of_a_template(kit: Kit, inbox: Inbox) -> None:
    html = '<style>p{}</style><p>Hello <a href="https://x.example">there</a></p>'
    await sent(kit, to="a@x.example", html=html)
    (mail,) = inbox.mails
    assert mail.part("html").strip() == html
    assert mail.part("plain").strip() == "Hello there (https://x.example)"


async def test_senders_have_addresses_and_groups(kit: Kit, inbox: Inbox) -> None:
    presets = {
        "orders": "orders@",
        "hello": "hello@",
        "account": "account@",
        "marketing": "offers@",
        "security": "security@",
        "newsletter": "newsletter@",
        "internal": "alerts@",
    }
    for name, address in presets.items():
        body = await sent(kit, to="a@x.example", subject=name, sender=name)
        assert body["options"]["group"] == name
        assert inbox.mails[-1].sender == f"{address}acme.example"
    body = await sent(kit, to="a@x.example", subject="other", group=24933)
    assert body["options"]["group"] == 24933


async def test_who_unsubscribed_from_a_group_gets_no_mail_of_it(kit: Kit, inbox: Inbox) -> None:
    await sent(kit, to=["a@x.example", "b@x.example"], subject="first", sender="newsletter")
    link = str(inbox.mails[0].message["list-unsubscribe"]).strip("<>")
    assert inbox.mails[0].message["list-unsubscribe-post"] == "List-Unsubscribe=One-Click"
    token = link.partition("token=")[2]
    found = world(kit).mail.links.read(token)
    assert found == ("a@x.example", "newsletter")
    async with kit.app.gate.database.transaction() as tx:
        await world(kit).consent.unsubscribe(tx, *found, "test")
    inbox.mails.clear()
    body = await sent(kit, to=["A@x.example", "b@x.example"], subject="2", sender="newsletter")
    assert inbox.everyone == ["b@x.example"]
    assert body["options"]["unsubscribed"] == ["A@x.example"]
    status, text = await refused(
        kit, inbox, to="a@x.example", subject="3", sender="newsletter", copy=False
    )
    assert (status, "a@x.example unsubscribed" in text) == (409, True)
    await sent(kit, to="a@x.example", subject="4", sender="orders")
    assert inbox.everyone[0] == "a@x.example"


async def test_marketing_heeds_revoked_consent(kit: Kit, inbox: Inbox) -> None:
    async with kit.app.gate.database.transaction() as tx:
        await world(kit).consent.revoke(tx, "test-basic@example.com", "test")
    status, _ = await refused(
        kit, inbox, to="_test-basic", subject="x", sender="marketing", copy=False
    )
    assert status == 409
    await sent(kit, to="_test-basic", sender="account")
    assert inbox.everyone == ["test-basic@example.com"]


async def test_a_mail_72_hours_ahead_is_held_survives_a_restart_and_leaves_once(
    tmp_path: Path, database_url: str, inbox: Inbox
) -> None:
    now = datetime.now(UTC)
    due = now + timedelta(hours=72)
    async with opened_mail_kit(tmp_path, inbox.url, database__url=database_url) as kit:
        body = await sent(kit, to="a@x.example", sendAt=due.isoformat())
        assert body["status"] == "queued"
        mail_id = body["response"]["messageId"]
        kept = await world(kit).documents.get("emails-queue", mail_id)
        assert kept is not None
        assert kept["sendAt"]["timestampUNIX"] == int(due.timestamp())
    assert inbox.mails == []
    async with opened_mail_kit(tmp_path, inbox.url, database__url=database_url) as kit:
        await at(kit, due - timedelta(seconds=1)).deliver_due()
        assert inbox.mails == [], "never earlier than asked"
        assert (await at(kit, due).deliver_due())["sent"] == 1
        await at(kit, due + timedelta(hours=1)).deliver_due()
        assert inbox.everyone == ["a@x.example"]
        assert await world(kit).documents.get("emails-queue", mail_id) is None
        found = await world(kit).documents.get("emails", mail_id)
        assert found is not None
        assert found["status"] == "sent"


@pytest.mark.parametrize("unix", [False, True])
async def test_a_mail_for_later_today_is_held_too(kit: Kit, inbox: Inbox, unix: bool) -> None:
    due = datetime.now(UTC) + timedelta(hours=2)
    body = await sent(kit, to="a@x.example", sendAt=int(due.timestamp()) if unix else str(due))
    assert (body["status"], inbox.mails) == ("queued", [])
    await at(kit, due + timedelta(seconds=1)).deliver_due()
    assert inbox.everyone == ["a@x.example"]


async def test_a_date_in_the_past_is_now(kit: Kit, inbox: Inbox) -> None:
    body = await sent(kit, to="a@x.example", sendAt="2020-01-01T00:00:00Z")
    assert (body["status"], inbox.everyone) == ("sent", ["a@x.example"])


async def test_two_workers_deliver_what_is_due_once(kit: Kit, inbox: Inbox) -> None:
    import anyio

    due = datetime.now(UTC) + timedelta(hours=1)
    for number in range(10):
        await sent(kit, to=f"u{number}@x.example", sendAt=due.isoformat())
    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(at(kit, due).deliver_due)
    assert inbox.everyone == sorted(f"u{number}@x.example" for number in range(10))


async def test_what_was_surely_not_taken_is_tried_again_later(kit: Kit, inbox: Inbox) -> None:
    due = datetime.now(UTC) + timedelta(hours=1)
    inbox.of_recipient = {"b@x.example": "451 later"}
    await sent(kit, to=["a@x.example", "b@x.example"], sendAt=due.isoformat())
    assert (await at(kit, due).deliver_due())["retried"] == 1
    assert inbox.everyone == ["a@x.example"]
    await at(kit, due + timedelta(seconds=59)).deliver_due()
    inbox.of_recipient = {}
    assert (await at(kit, due + timedelta(minutes=1)).deliver_due())["sent"] == 1
    assert inbox.everyone == ["a@x.example", "b@x.example"]


async def test_a_dead_server_is_an_error_in_words_and_nothing_stays(
    tmp_path: Path, inbox: Inbox
) -> None:
    async with opened_mail_kit(tmp_path, "smtp://127.0.0.1:1") as kit:
        outcome = await kit.call("send_email", to="a@x.example", subject="x", copy=False)
        assert outcome.status == 503
        assert "127.0.0.1:1 could not be reached" in outcome.text
        assert await world(kit).mail.queue.page(None, None, 10) == []


async def test_every_recipient_refused_is_400_with_the_servers_words(
    kit: Kit, inbox: Inbox
) -> None:
    inbox.of_recipient = {"a@x.example": "550 no such user"}
    status, text = await refused(kit, inbox, to="a@x.example", subject="x", copy=False)
    assert (status, "a@x.example: 550 no such user" in text) == (400, True)


async def test_unconfirmed_is_told_kept_and_never_sent_again(kit: Kit, inbox: Inbox) -> None:
    inbox.of_data = ["drop"]
    mail = {"to": "a@x.example", "subject": "x", "copy": False}
    status, text = await refused(kit, inbox, **mail)
    assert status == 504
    assert "Whether the mail was sent is not known" in text
    (unknown,) = await world(kit).mail.queue.page(Status.UNKNOWN, None, 10)
    status, text = await refused(kit, inbox, **mail)
    assert (status, unknown.id in text) == (409, True)
    await at(kit, datetime.now(UTC) + timedelta(days=1)).deliver_due()
    assert inbox.mails == []
    listed = (await kit.call("operator.email.list", status="unknown")).body["mails"]
    assert [one["id"] for one in listed] == [unknown.id]
    done = await kit.call("operator.email.resolve", ids=[unknown.id, "other"], taken=False)
    assert done.body == {"settled": [unknown.id], "ignored": ["other"]}
    found = await world(kit).documents.get("emails", unknown.id)
    assert found is not None
    assert found["status"] == "failed"
    await sent(kit, to="a@x.example", subject="x")
    assert inbox.everyone == ["a@x.example"]


async def test_a_dry_run_sends_nothing(kit: Kit, inbox: Inbox) -> None:
    outcome = await kit.call("send_email", to="a@x.example", subject="x", dry_run=True)
    assert outcome.status >= 400
    assert (inbox.mails, inbox.connections) == ([], 0)
    assert await world(kit).mail.queue.page(None, None, 10) == []


async def test_users_do_not_see_it(kit: Kit, inbox: Inbox) -> None:
    anna = of_role(Role.USER, "key:1", "anna")
    outcome = await kit.call("send_email", anna, to="a@x.example", subject="x")
    assert outcome.status == 404
    assert inbox.mails == []


async def test_the_outbox_keeps_mails_until_an_operator_delivers_them(
    tmp_path: Path, database_url: str, inbox: Inbox
) -> None:
    async with opened_mail_kit(tmp_path, "outbox:", database__url=database_url) as kit:
        body = await sent(kit, to=["a@x.example", "b@x.example"])
        assert body["response"]["provider"] == "outbox"
        assert body["response"]["delivery"] == "waiting"
        assert {one["outcome"] for one in body["response"]["recipients"]} == {"kept"}
        assert (await record(kit, body))["status"] == "waiting"
        (mail,) = (await kit.call("operator.email.list", status="waiting")).body["mails"]
        assert mail["options"]["subject"] == "Hello"
        assert "mail.url" in (await kit.call("operator.email.deliver")).body["note"]
    async with opened_mail_kit(tmp_path, inbox.url, database__url=database_url) as kit:
        await at(kit, datetime.now(UTC) + timedelta(days=1)).deliver_due()
        assert inbox.mails == [], "only if asked"
        assert (await kit.call("operator.email.deliver")).body == {
            "counts": {"sent": 1},
            "campaigns": 0,
        }
        assert inbox.everyone == ["a@x.example", "b@x.example"]
        assert (await kit.call("operator.email.deliver")).body == {"counts": {}, "campaigns": 0}
        assert (await record(kit, body))["status"] == "sent"
        assert len(inbox.mails) == 2


@pytest.mark.parametrize("group", [10**30, 0, -1, 2**31])
async def test_a_group_is_a_number_that_there_can_be(kit: Kit, inbox: Inbox, group: int) -> None:
    refused = await kit.call("send_email", to="a@x.example", subject="S", group=group)
    assert (refused.status, refused.text) == (400, "group must be from 1 to 2147483647")
    assert inbox.mails == []


@pytest.mark.parametrize("name", ["é" * 500, "x" * 500, "\U0001f600" * 200, 'A "B" ' * 80])
async def test_a_long_name_goes_over_several_lines(kit: Kit, inbox: Inbox, name: str) -> None:
    await sent(kit, to={"email": "a@x.example", "name": name}, subject="é" * 500)
    (mail,) = inbox.mails
    assert max(map(len, mail.content.split(b"\r\n"))) <= 200
    words, _, address = email.message_from_bytes(mail.content)["to"].rpartition(" ")
    assert str(make_header(decode_header(words))).strip() == name.strip()
    assert address == "<a@x.example>"


async def test_a_name_without_an_end_is_refused(kit: Kit, inbox: Inbox) -> None:
    refused = await kit.call("send_email", to={"email": "a@x.example", "name": "é" * 501},
                             subject="S")  # fmt: skip
    assert (refused.status, refused.text) == (400, "to must have a name of at most 500 characters")
    assert inbox.mails == []


async def test_blank_recipients_count_towards_the_limit(kit: Kit, inbox: Inbox) -> None:
    refused = await kit.call("send_email", to=["a@x.example", *[[]] * 1000], subject="S")
    assert "more recipients than the limit of 1000" in refused.text
    await sent(kit, to=["", None, [], "a@x.example", [["A@x.example"]]])
    assert len(inbox.mails) == 1


@pytest.mark.parametrize("html", ["\n" * 500_000, "é" * 300_000, ".\r\n" * 100_000])
async def test_a_long_mail_arrives_as_it_is(kit: Kit, inbox: Inbox, html: str) -> None:
    await sent(kit, to="a@x.example", html=html)
    (mail,) = inbox.mails
    assert max(map(len, mail.content.split(b"\r\n"))) <= 200
    part = mail.message.get_body(("html",))
    assert part is not None
    assert part.get_content().split() == html.split()

"""The SMTP adapter against a real server: each refusal, each failure, in time and in words."""

import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.smtp_server import Inbox, smtp_server

from toolgate.certificates import ensure
from toolgate.packs.backend.mail.addresses import Address
from toolgate.packs.backend.mail.message import Message, Recipient
from toolgate.packs.backend.mail.port import Delivery, MailUnavailable, Outcome
from toolgate.packs.backend.mail.smtp import SmtpMailer, SmtpServer

pytestmark = pytest.mark.anyio

ACCEPTED, REFUSED, UNKNOWN = Outcome.ACCEPTED, Outcome.REFUSED, Outcome.UNKNOWN


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with smtp_server() as running:
        yield running


@asynccontextmanager
async def mailer(port: int, connections: int = 2, **server: Any) -> AsyncIterator[SmtpMailer]:
    given = {"host": "127.0.0.1", "port": port, "starttls": False, "seconds": 5.0} | server
    made = SmtpMailer(SmtpServer(**given), connections)
    try:
        yield made
    finally:
        await made.close()


def message(**more: Any) -> Message:
    fixed = {
        "id": "m1",
        "sender": Address("hello@acme.example", "Acmé"),
        "to": (Address("anna@example.com", "Anna"),),
        "subject": "Grüße an alle, die eine ziemlich lange Betreffzeile zu schätzen wissen",
        "html": "<p>Hé</p>\n<p>.</p>\n.dot",
        "text": "Hé\n.\n.dot\n",
        "date": datetime(2026, 1, 2, tzinfo=UTC),
    }
    return Message(**(fixed | more))


def to(*emails: str) -> list[Recipient]:
    return [Recipient(Address(one), "to", f"https://x.example/u?token={one}") for one in emails]


async def test_a_mail_arrives_as_it_was_meant(inbox: Inbox) -> None:
    async with mailer(inbox.port) as smtp:
        (done,) = await smtp.send(message(), to("anna@example.com"))
    assert done == Delivery("anna@example.com", ACCEPTED, "250 taken")
    (mail,) = inbox.mails
    assert mail.sender == "hello@acme.example"
    head = mail.message
    assert head["subject"].startswith("Grüße an alle")
    assert str(head["from"]) == "Acmé <hello@acme.example>"
    assert head["message-id"] == "<m1@acme.example>"
    assert mail.part("plain").splitlines()[:3] == ["Hé", ".", ".dot"]
    assert "<p>Hé</p>" in mail.part("html")
    assert head["list-unsubscribe"] == "<https://x.example/u?token=anna@example.com>"
    assert head["list-unsubscribe-post"] == "List-Unsubscribe=One-Click"


async def test_a_refused_recipient_is_named_and_the_others_get_it(inbox: Inbox) -> None:
    inbox.of_recipient = {"b@x.example": "550 5.1.1 no such user", "c@x.example": "451 later"}
    async with mailer(inbox.port) as smtp:
        done = await smtp.send(
            message(), to("a@x.example", "b@x.example", "c@x.example", "d@x.example")
        )
    assert [(one.outcome, one.words, one.temporary) for one in done] == [
        (ACCEPTED, "250 taken", False),
        (REFUSED, "550 5.1.1 no such user", False),
        (REFUSED, "451 later", True),
        (ACCEPTED, "250 taken", False),
    ]
    assert inbox.everyone == ["a@x.example", "d@x.example"]


async def test_each_recipient_has_a_link_of_their_own(inbox: Inbox) -> None:
    async with mailer(inbox.port) as smtp:
        await smtp.send(message(), to("a@x.example", "b@x.example"))
    links = {one.recipients[0]: one.message["list-unsubscribe"] for one in inbox.mails}
    assert links["a@x.example"].endswith("token=a@x.example>")
    assert links["b@x.example"].endswith("token=b@x.example>")


@pytest.mark.parametrize("answer", ["451 try again", "552 too large"])
async def test_content_that_is_refused_was_not_taken(inbox: Inbox, answer: str) -> None:
    inbox.of_data = [answer]
    async with mailer(inbox.port) as smtp:
        (first,) = await smtp.send(message(), to("a@x.example"))
        (second,) = await smtp.send(message(), to("a@x.example"))
    assert (first.outcome, first.words) == (REFUSED, answer)
    assert first.temporary == (answer[0] == "4")
    assert second.outcome is ACCEPTED
    assert inbox.connections == 1, "the connection is still good"


async def test_a_connection_lost_in_the_middle_of_data_is_unknown(inbox: Inbox) -> None:
    inbox.of_data = ["drop"]
    async with mailer(inbox.port) as smtp:
        (done,) = await smtp.send(message(), to("a@x.example"))
        (next_one,) = await smtp.send(message(), to("b@x.example"))
    assert done.outcome is UNKNOWN
    assert "may have been taken" in done.words
    assert next_one.outcome is ACCEPTED
    assert inbox.everyone == ["b@x.example"]


async def test_a_server_that_takes_too_long_is_unknown_in_time(inbox: Inbox) -> None:
    inbox.of_data = ["silent"]
    async with mailer(inbox.port, seconds=0.2) as smtp:
        with anyio.fail_after(10):
            (done,) = await smtp.send(message(), to("a@x.example"))
    assert done.outcome is UNKNOWN
    assert "no answer in 0.2 s" in done.words


async def test_a_dead_server_is_told_at_once_for_every_recipient() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    async with mailer(port) as smtp:
        done = await smtp.send(message(), to("a@x.example", "b@x.example"))
    assert {(one.outcome, one.words, one.temporary) for one in done} == {
        (REFUSED, f"127.0.0.1:{port} could not be reached.", True)
    }


async def test_a_server_that_never_greets_is_told_in_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        async with mailer(port, seconds=0.2) as smtp:
            with anyio.fail_after(10):
                (done,) = await smtp.send(message(), to("a@x.example"))
    assert (done.outcome, done.temporary) == (REFUSED, True)
    assert "did not answer in 0.2 s" in done.words


async def test_connections_are_kept_and_bounded(inbox: Inbox) -> None:
    async with mailer(inbox.port, connections=3) as smtp, anyio.create_task_group() as tasks:
        for number in range(40):
            tasks.start_soon(smtp.send, message(), to(f"u{number}@x.example"))
    assert len(inbox.everyone) == 40
    assert inbox.connections == 3


async def test_a_connection_that_the_server_closed_is_made_anew(inbox: Inbox) -> None:
    async with mailer(inbox.port, connections=1) as smtp:
        await smtp.send(message(), to("a@x.example"))
        (kept,) = smtp._pool._idle
        kept.client.transport.abort()  # as if the server had gone, without a word
        (done,) = await smtp.send(message(), to("b@x.example"))
    assert done.outcome is ACCEPTED
    assert inbox.everyone == ["a@x.example", "b@x.example"]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    files = ensure(tmp_path_factory.mktemp("tls"), ("localhost", "127.0.0.1")).files
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.certificate, files.key)
    return context, files.ca


async def test_starttls_and_a_password(certificates: tuple[ssl.SSLContext, Path]) -> None:
    context, ca = certificates
    with smtp_server(tls=context, login=("u", "p@ss")) as inbox:
        login = {"username": "u", "password": "p@ss", "starttls": True, "ca_file": ca}
        async with mailer(inbox.port, **login) as smtp:
            assert await smtp.check() == f"127.0.0.1:{inbox.port} answers with TLS, signed in"
            (done,) = await smtp.send(message(), to("a@x.example"))
    assert done.outcome is ACCEPTED


async def test_tls_from_the_first_byte(certificates: tuple[ssl.SSLContext, Path]) -> None:
    context, ca = certificates
    with smtp_server(tls=context, implicit_tls=True) as inbox:
        async with mailer(inbox.port, tls=True, ca_file=ca) as smtp:
            (done,) = await smtp.send(message(), to("a@x.example"))
    assert done.outcome is ACCEPTED


@pytest.mark.parametrize("implicit", [False, True])
async def test_a_certificate_that_nobody_vouches_for_is_refused(
    certificates: tuple[ssl.SSLContext, Path], implicit: bool
) -> None:
    with smtp_server(tls=certificates[0], implicit_tls=implicit) as inbox:
        async with mailer(inbox.port, starttls=not implicit, tls=implicit) as smtp:
            (done,) = await smtp.send(message(), to("a@x.example"))
            with pytest.raises(MailUnavailable, match=r"certificate of 127\.0"):
                await smtp.check()
    assert (done.outcome, done.temporary) == (REFUSED, True)
    assert "is refused: " in done.words
    assert inbox.mails == []


async def test_a_certificate_for_another_name_is_refused(tmp_path: Path) -> None:
    files = ensure(tmp_path, ("localhost",)).files
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.certificate, files.key)
    with smtp_server(tls=context) as inbox:
        async with mailer(inbox.port, starttls=True, ca_file=files.ca) as smtp:
            (done,) = await smtp.send(message(), to("a@x.example"))
    assert "The certificate of 127.0.0.1" in done.words
    assert inbox.mails == []


async def test_a_server_without_starttls_gets_nothing(inbox: Inbox) -> None:
    async with mailer(inbox.port, starttls=True) as smtp:
        (done,) = await smtp.send(message(), to("a@x.example"))
    assert done.words.endswith("does not offer STARTTLS, and mail.starttls requires it.")
    assert inbox.mails == []


async def test_a_wrong_password_is_told_without_it(
    certificates: tuple[ssl.SSLContext, Path],
) -> None:
    context, ca = certificates
    with smtp_server(tls=context, login=("u", "right")) as inbox:
        login = {"username": "u", "password": "wrong-secret", "starttls": True, "ca_file": ca}
        async with mailer(inbox.port, **login) as smtp:
            (done,) = await smtp.send(message(), to("a@x.example"))
    assert "refuses the user or the password of mail.url" in done.words
    assert "wrong-secret" not in done.words
    assert inbox.mails == []

"""A server that is killed once the mail server has a mail, and links in mails over real HTTP."""

import http.client
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from tests.faults.server import served
from tests.smtp_server import smtp_server

from toolgate.packs.backend.mail.queue import Status
from toolgate.packs.backend.mail.sending import Sending
from toolgate.packs.backend.world import BackendWorld
from toolgate.testing import opened_kit

MAIL = {"to": "a@x.example", "subject": "Once", "sender": "newsletter"}


async def later(data: Path, url: str) -> tuple[list[Status], str]:
    """What a server a day later finds in the queue after a look at it, and the mail's record."""
    async with opened_kit(data, packs__enabled=["backend"], mail__url=url) as kit:
        world: BackendWorld = kit.app.worlds["backend"].world
        old = world.mail.sending
        tomorrow = datetime.now(UTC) + timedelta(days=1)
        sending = Sending(old.mailer, old.queue, old.documents, old.database, lambda: tomorrow)
        await sending.deliver_due()
        mails = await old.queue.page(None, None, 10)
        record = await world.documents.get("emails", mails[0].id)
        assert record is not None
        return [one.status for one in mails], record["status"]


def test_a_kill_between_the_mail_servers_yes_and_our_commit_sends_no_second_mail(
    tmp_path: Path,
) -> None:
    with smtp_server() as inbox:
        settings = {"packs__enabled": "backend", "mail__url": inbox.url}
        with served(tmp_path, **settings) as running:
            inbox.took = running.kill
            with pytest.raises((http.client.HTTPException, OSError)):
                running.call("send_email", **MAIL)
        assert inbox.everyone == ["a@x.example"]
        inbox.took = lambda: None
        with served(tmp_path, **settings) as running:
            again = running.call("send_email", **MAIL)
            assert again.status == 409
            assert "not sent twice" in str(again.body)
        assert anyio.run(later, tmp_path, inbox.url) == ([Status.UNKNOWN], "unknown")
        assert inbox.everyone == ["a@x.example"]


def test_one_click_ends_mails_of_a_group_and_looking_does_not(tmp_path: Path) -> None:
    with smtp_server() as inbox:
        settings = {"packs__enabled": "backend", "mail__url": inbox.url}
        with served(tmp_path, **settings) as running:
            assert running.call("send_email", **MAIL).status == 200
            link = str(inbox.mails[0].message["list-unsubscribe"]).strip("<>")
            path = link[link.index("/backend-manager/") :]
            assert running.ask("GET", path).status == 200
            assert running.ask("POST", path[:-3] + "AAA").status == 400
            assert running.call("send_email", **MAIL | {"subject": "2"}).status == 200
            assert running.ask("POST", path).status == 200
            assert running.call("send_email", **MAIL | {"subject": "3"}).status == 409
            # The same tool on its own route.
            other = MAIL | {"subject": "4", "sender": "orders"}
            assert running.ask("POST", "/backend-manager/admin/email", other).status == 200
        assert [str(one.message["subject"]) for one in inbox.mails] == ["Once", "2", "4"]

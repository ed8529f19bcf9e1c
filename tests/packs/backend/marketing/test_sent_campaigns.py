"""Campaigns that are sent: to whom, with what in them, and what is told of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.packs.backend.fcm_server import UNAVAILABLE, UNREGISTERED, error, fcm_server
from tests.patience import PATIENT
from tests.smtp_server import smtp_server

from toolgate.gate.principal import Principal, Role, of_person
from toolgate.packs.backend.marketing.deliveries import State
from toolgate.packs.backend.world import BackendWorld
from toolgate.ports.documents import Query
from toolgate.testing import Kit, opened_kit
from toolgate.workflows.declarations import RunStatus

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def opened(folder: Path, **settings: Any) -> AsyncGenerator[Kit]:
    settings = {"packs__enabled": ["backend"], "brand__contact": "hello@brand.example", **settings}
    async with opened_kit(folder, writes=True, demo_data=True, **settings) as kit:
        yield kit


async def sent(kit: Kit, **given: Any) -> dict[str, Any]:
    """Send a campaign now; what is kept of it when that is over."""
    given = {"name": "News", "subject": "News of {brand.name}", **given}
    as_ = given.pop("as_", None)
    made = await (kit.call("create_campaign", as_, **given) if as_ else
                  kit.call("create_campaign", **given))  # fmt: skip
    assert made.body["status"] == "processing", made.body
    campaign = (await kit.call("list_campaigns", id=made.body["id"])).body["campaign"]
    world: Any = kit.app.worlds["backend"].world
    run = await world.workflows.wait(campaign["run"], seconds=PATIENT)
    assert run.error is None
    return (await kit.call("list_campaigns", id=made.body["id"])).body["campaign"]


async def test_the_outbox_says_that_nobody_got_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as kit:
        campaign = await sent(kit, segments=["subscription_paid"])
    assert campaign["status"] == "sent"
    assert campaign["delivery"] == {"kept": 2}


async def test_what_the_outbox_kept_is_delivered_once_when_asked(tmp_path: Path) -> None:
    left = "test-premium-cancelling@example.com"
    async with opened(tmp_path) as kit:
        id = (await sent(kit, segments=["subscription_paid"]))["id"]
        stays = await kit.call("operator.email.deliver")
        assert "mail.url" in stays.body["note"]
        await kit.call("delete_contact", email=left)
    with smtp_server() as inbox:
        async with opened(tmp_path, mail__url=inbox.url) as kit:
            user = {"auth": {"email": "late@example.org"}, "subscription": {"product": {"id": "x"}}}
            await kit.call("firestore_write", path="users/late", document=user)
            assert inbox.mails == []
            done = await kit.call("operator.email.deliver")
            assert done.body["campaigns"] == 1, done.text
            campaign = (await kit.call("list_campaigns", id=id)).body["campaign"]
            world: Any = kit.app.worlds["backend"].world
            await world.workflows.wait(campaign["run"], seconds=PATIENT)
            campaign = (await kit.call("list_campaigns", id=id)).body["campaign"]
            assert campaign["status"] == "sent"
            assert campaign["delivery"] == {"accepted": 1, "skipped": 1}
            again = await kit.call("operator.email.deliver")
            assert again.body["campaigns"] == 0
    assert inbox.everyone == ["test-premium-active@example.com"]


async def test_a_segment_gets_it_and_nobody_else(tmp_path: Path) -> None:
    with smtp_server() as inbox:
        async with opened(tmp_path, mail__url=inbox.url) as kit:
            content = {"title": "Hello <b>", "discountCode": "X15", "message": "{date.month}"}
            campaign = await sent(
                kit,
                segments=["subscription_paid"],
                excludeSegments=["subscription_cancelling"],
                preheader="Look",
                data={"content": content},
            )
    assert campaign["delivery"] == {"accepted": 1}
    (mail,) = inbox.mails
    assert mail.recipients == ["test-premium-active@example.com"]
    assert mail.message["Subject"] == "News of toolgate"
    assert mail.message["From"] == "toolgate Offers <offers@brand.example>"
    assert "Pat" in mail.message["To"]
    assert "List-Unsubscribe=One-Click" in mail.message["List-Unsubscribe-Post"]
    assert "Hello &lt;b&gt;" in mail.part("html")
    assert "X15" in mail.part("plain")


async def test_consent_is_heeded(tmp_path: Path) -> None:
    with smtp_server() as inbox:
        async with opened(tmp_path, mail__url=inbox.url) as kit:
            revoked = {"consent": {"marketing": {"status": "revoked"}}}
            path = "users/_test-premium-active"
            await kit.call("firestore_write", path=path, document=revoked)
            campaign = await sent(kit, segments=["subscription_paid"])
    assert campaign["delivery"] == {"accepted": 1, "skipped": 1}
    assert inbox.everyone == ["test-premium-cancelling@example.com"]


async def test_all_means_everybody_once(tmp_path: Path) -> None:
    with smtp_server() as inbox:
        async with opened(tmp_path, mail__url=inbox.url) as kit:
            twin = {"auth": {"email": "JANE@example.com"}}
            await kit.call("firestore_write", path="users/twin", document=twin)
            campaign = await sent(kit, all=True)
    assert campaign["delivery"] == {"accepted": len(inbox.mails)}
    assert len(inbox.everyone) == len(set(inbox.everyone))
    assert inbox.everyone.count("test-basic@example.com") == 1


async def test_all_are_also_contacts_who_are_no_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.packs.backend.marketing.channels.PAGE", 2)
    monkeypatch.setattr("toolgate.packs.backend.marketing.segments.PAGE", 2)
    paid, left = "test-premium-active@example.com", "left@example.org"
    people = [f"contact{number}@example.org" for number in range(5)]
    with smtp_server() as inbox:
        async with opened(tmp_path, mail__url=inbox.url) as kit:
            for email in [*people, paid, left]:
                given = {"email": email, "firstName": "Con", "skipValidation": True}
                assert (await kit.send("create_contact", given)).error is None
            await kit.call("delete_contact", email=left)
            async with kit.app.gate.database.transaction() as tx:
                world: Any = kit.app.worlds["backend"].world
                await world.consent.unsubscribe(tx, people[0], "marketing", "test")
            campaign = await sent(kit, all=True, excludeSegments=["subscription_paid"])
            assert campaign["delivery"]["skipped"] == 1
            got = set(inbox.everyone)
            assert len(got) == len(inbox.everyone)
            assert got & {*people, paid, left} == set(people[1:])
            await sent(kit, segments=["subscription_free"])
    assert [one for one in inbox.everyone if one in people] == sorted(people[1:])


async def test_a_test_goes_to_the_caller_alone(tmp_path: Path) -> None:
    with smtp_server() as inbox:
        async with opened(tmp_path, mail__url=inbox.url) as kit:
            await sent(kit, all=True, test=True)
            assert inbox.everyone == ["hello@brand.example"]
            campaign = await sent(kit, segments=["subscription_paid"], test=True)
    assert campaign["delivery"] == {"accepted": 1}
    assert len(inbox.mails) == 2


async def test_refusals_are_counted_and_do_not_stop_the_others(tmp_path: Path) -> None:
    with smtp_server() as inbox:
        inbox.of_recipient["test-premium-active@example.com"] = "550 no such user"
        async with opened(tmp_path, mail__url=inbox.url) as kit:
            campaign = await sent(kit, segments=["subscription_paid"])
    assert campaign["status"] == "sent"
    assert campaign["delivery"] == {"accepted": 1, "refused": 1}


async def test_when_nobody_takes_it_the_campaign_has_failed(tmp_path: Path) -> None:
    with smtp_server() as inbox:
        for uid in ("active", "cancelling"):
            inbox.of_recipient[f"test-premium-{uid}@example.com"] = "550 no"
        async with opened(tmp_path, mail__url=inbox.url) as kit:
            campaign = await sent(kit, segments=["subscription_paid"])
    assert (campaign["status"], campaign["delivery"]) == ("failed", {"refused": 2})


async def test_a_campaign_by_push_reaches_the_devices_of_its_users(tmp_path: Path) -> None:
    async with opened(tmp_path) as kit:
        for number, owner in enumerate(("_test-premium-active", "_test-basic", None)):
            fields: dict[str, Any] = {"token": f"t{number}", "owner": owner, "tags": []}
            await kit.call("firestore_write", path=f"notifications/t{number}", document=fields)
        paid = await sent(kit, type="push", segments=["subscription_paid"])
        every = await sent(kit, type="push", all=True)
        me = await sent(kit, type="push", all=True, test=True, as_=of_admin("_test-basic"))
    assert (paid["delivery"], every["delivery"]) == ({"kept": 1}, {"kept": 3})
    assert me["delivery"] == {"kept": 1}


async def test_push_reaches_each_token_once_and_dead_ones_are_deleted(tmp_path: Path) -> None:
    with fcm_server() as fcm:
        fcm.of_token = {"old": UNREGISTERED, "busy": UNAVAILABLE}
        fcm.headers["retry-after"] = "60"
        async with opened(tmp_path, **fcm.settings()) as kit:
            for token in ("fine", "old", "busy"):
                path = f"notifications/of-{token}"
                await kit.call("firestore_write", path=path, document={"token": token})
            campaign = await sent(kit, type="push", all=True)
            left = await kit.app.documents.of("backend").query(Query("notifications"))
    assert campaign["delivery"] == {"accepted": 1, "refused": 2}
    assert fcm.sent == {"fine": 1}, "the token of a document, not its id"
    assert [one.id for one in left] == ["of-busy", "of-fine"]


async def test_a_push_service_that_refuses_the_account_is_waited_for(tmp_path: Path) -> None:
    with fcm_server() as fcm:
        fcm.of_all = error(401, "UNAUTHENTICATED")
        async with opened(tmp_path, **fcm.settings()) as kit:
            await kit.call("firestore_write", path="notifications/t1", document={"token": "t1"})
            made = await kit.call("create_campaign", name="a", subject="b", type="push", all=True)
            id = made.body["id"]
            world: BackendWorld = kit.app.worlds["backend"].world
            run = (await kit.call("list_campaigns", id=id)).body["campaign"]["run"]
            with anyio.fail_after(PATIENT):
                while (record := await world.workflows.find(run)).error is None:  # noqa: ASYNC110
                    await anyio.sleep(0.01)
            counts = await world.marketing.deliveries.counts(id)
    assert "refuses the service account" in str(record.error)
    assert (record.status, counts) == (RunStatus.QUEUED, {State.WAITING: 1})


def of_admin(uid: str) -> Principal:
    person = of_person(uid)
    return replace(person, roles=person.roles | {Role.ADMIN})

"""The five parts of `daily` and `frequent` that look after records of the application."""

import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.smtp_server import Inbox, smtp_server

from toolgate.packs.backend.marketing.carts import CARTS, SUBJECT
from toolgate.ports.documents import Create
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

HOUR, DAY = 3600, 86_400


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    settings: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["backend"]}
    async with opened_kit(tmp_path, **settings) as opened:
        yield opened


async def store(kit: Kit, path: str, **fields: Any) -> None:
    done = await kit.call("firestore_write", path=path, document=fields)
    assert done.status == 200, done.body


async def stored(kit: Kit, path: str) -> dict[str, Any]:
    return (await kit.call("firestore_read", path=path)).body


async def run(kit: Kit, id: str) -> dict[str, Any]:
    body = (await kit.call("run_cron", id=id)).body
    assert body["status"] == "succeeded", body
    return body["result"]


def moment(seconds_ago: float) -> dict[str, int]:
    return {"timestampUNIX": int(time.time() - seconds_ago)}


@pytest.mark.parametrize(
    ("id", "nothing"),
    [
        ("marketing-prune", {"checked": 0, "removed": 0}),
        ("data-requests", {"exported": 0, "deleted": 0, "refused": 0}),
        ("expire-paypal-cancellations", {"checked": 0, "expired": 0}),
        ("blog-auto-publisher", {"published": 0, "failed": 0, "waiting": 0}),
        (
            "abandoned-carts",
            {"reminded": 0, "no consent": 0, "too late": 0, "nobody to write to": 0},
        ),
    ],
)
async def test_with_nothing_to_do_it_says_so_with_counts(
    kit: Kit, id: str, nothing: dict[str, int]
) -> None:
    assert await run(kit, id) == nothing


async def test_prune_removes_who_wants_no_marketing_and_nobody_else(kit: Kit) -> None:
    for name in ("anna", "ben", "carl"):
        email = f"{name}@shop.example"
        done = await kit.call("create_contact", email=email, skipValidation=True)
        assert done.status == 200, done.body
    await store(
        kit,
        "users/ben",
        auth={"email": "ben@shop.example"},
        consent={"marketing": {"status": "revoked"}},
    )
    world = kit.app.worlds["backend"].world
    async with kit.app.gate.database.transaction() as tx:
        await world.consent.unsubscribe(tx, "carl@shop.example", "newsletter", "test")
    assert await run(kit, "marketing-prune") == {"checked": 3, "removed": 1}
    left = await world.contacts.list.page(None, 10)
    assert [one.contact.email for one in left] == ["anna@shop.example", "carl@shop.example"]
    assert await run(kit, "marketing-prune") == {"checked": 2, "removed": 0}


async def test_an_export_has_the_users_data_and_no_secret(kit: Kit) -> None:
    await store(kit, "users/anna", auth={"email": "anna@shop.example"}, api={"clientId": "c"})
    await store(kit, "notifications/t1", token="t1", owner="anna", tags=["x"])
    await store(kit, "notifications/t2", token="t2", owner="ben", tags=["x"])
    await store(kit, "data-requests/r1", uid="anna", type="export", status="pending")
    documents = kit.app.documents.of("backend")
    assert (await run(kit, "data-requests"))["exported"] == 1
    export = await documents.get("data-exports", "r1")
    assert export is not None
    assert export["user"]["auth"]["email"] == "anna@shop.example"
    assert "privateKey" not in export["user"].get("api", {})
    assert [one["token"] for one in export["notifications"]] == ["t1"]
    assert (await stored(kit, "data-requests/r1"))["status"] == "completed"
    assert (await run(kit, "data-requests"))["exported"] == 0


async def test_who_asks_to_be_forgotten_is_deleted_unless_they_pay(kit: Kit) -> None:
    paid = {"product": {"id": "premium"}, "status": "active"}
    await store(kit, "users/anna", auth={"email": "anna@shop.example"})
    await store(kit, "users/ben", auth={"email": "ben@shop.example"}, subscription=paid)
    await store(kit, "notifications/t1", token="t1", owner="anna")
    for uid in ("anna", "ben"):
        await store(kit, f"data-requests/of-{uid}", uid=uid, type="export", status="pending")
    assert (await run(kit, "data-requests"))["exported"] == 2
    for number, (uid, kind) in enumerate(
        [("anna", "deletion"), ("ben", "deletion"), ("nobody", "deletion"), ("ben", "other")]
    ):
        await store(kit, f"data-requests/r{number}", uid=uid, type=kind, status="pending")
    assert await run(kit, "data-requests") == {"exported": 0, "deleted": 1, "refused": 3}
    assert await stored(kit, "users/anna") == {}
    assert await stored(kit, "notifications/t1") == {}
    assert await stored(kit, "data-exports/of-anna") == {}
    assert (await stored(kit, "data-exports/of-ben"))["uid"] == "ben"
    assert (await stored(kit, "users/ben"))["subscription"]["status"] == "active"
    told = [(await stored(kit, f"data-requests/r{one}"))["result"] for one in range(4)]
    assert told[1].startswith("the user has a subscription; cancel it first")
    assert told[2:] == ["uid names no user", "type must be one of: export, deletion"]
    again = await kit.call("create_contact", email="anna@shop.example")
    assert again.status != 200, "nobody writes to them any more"


async def test_paypal_subscriptions_end_with_their_period_and_no_others(kit: Kit) -> None:
    def subscription(processor: str, seconds_ago: float, *, pending: bool = True) -> dict[str, Any]:
        return {
            "product": {"id": "premium", "name": "Premium"},
            "status": "active",
            "cancellation": {"pending": pending, "date": moment(seconds_ago)},
            "payment": {"processor": processor, "resourceId": "I-1"},
        }

    await store(kit, "users/over", subscription=subscription("paypal", HOUR))
    await store(kit, "users/later", subscription=subscription("paypal", -HOUR))
    await store(kit, "users/going", subscription=subscription("paypal", HOUR, pending=False))
    await store(kit, "users/stripe", subscription=subscription("stripe", HOUR))
    assert await run(kit, "expire-paypal-cancellations") == {"checked": 1, "expired": 1}
    over = (await stored(kit, "users/over"))["subscription"]
    assert (over["status"], over["product"]["id"]) == ("cancelled", "basic")
    assert over["cancellation"]["pending"] is False
    assert over["payment"]["updatedBy"]["event"]["name"] == "daily/expire-paypal-cancellations"
    for name in ("later", "going", "stripe"):
        assert (await stored(kit, f"users/{name}"))["subscription"]["status"] == "active"
    assert await run(kit, "expire-paypal-cancellations") == {"checked": 0, "expired": 0}


async def test_posts_are_published_on_their_day_and_what_is_wrong_is_told(kit: Kit) -> None:
    post = {"title": "Spring is here", "body": "It is warm. Go out."}
    await store(
        kit, "posts-queue/now", post=post, publishAt=int(time.time() - 60), status="pending"
    )
    later = {**post, "title": "Summer"}
    await store(
        kit, "posts-queue/later", post=later, publishAt=int(time.time() + DAY), status="pending"
    )
    await store(kit, "posts-queue/bad", post={"title": "x"}, status="pending")
    await store(kit, "posts-queue/date", post=post, publishAt="soon", status="pending")
    assert await run(kit, "blog-auto-publisher") == {"published": 1, "failed": 2, "waiting": 1}
    done = await stored(kit, "posts-queue/now")
    assert done["status"] == "published"
    assert done["path"].endswith("-spring-is-here.md")
    assert "body" in (await stored(kit, "posts-queue/bad"))["error"]
    assert (await stored(kit, "posts-queue/date"))["error"].startswith("publishAt must be a date")
    assert await run(kit, "blog-auto-publisher") == {"published": 0, "failed": 0, "waiting": 1}


async def carts(kit: Kit) -> None:
    goods = {"items": [{"name": "Hat", "quantity": 1, "price": 9.5}], "currency": "eur"}
    link = {"url": "https://shop.example/cart"}
    await store(kit, "users/anna", auth={"email": "anna@shop.example"})
    await store(
        kit,
        "users/ben",
        auth={"email": "ben@shop.example"},
        consent={"marketing": {"status": "revoked"}},
    )
    each = {
        "left": {"owner": "anna", **goods, **link, "metadata": {"updated": moment(2 * HOUR)}},
        "fresh": {"owner": "anna", **goods, "metadata": {"updated": moment(60)}},
        "unwilling": {"owner": "ben", **goods, "metadata": {"updated": moment(2 * HOUR)}},
        "old": {"owner": "anna", **goods, "metadata": {"updated": moment(9 * DAY)}},
        "nobody": {"owner": "absent", **goods, "metadata": {"updated": moment(2 * HOUR)}},
    }
    documents = kit.app.documents.of("backend")
    async with kit.app.gate.database.transaction() as tx:  # as the application stores them
        for name, fields in each.items():
            await documents.write(tx, Create(CARTS, name, {"status": "pending", **fields}))


async def test_who_left_a_cart_is_reminded_once_and_only_with_consent(
    tmp_path: Path, database_url: str
) -> None:
    with smtp_server() as inbox:
        settings: dict[str, Any] = {"packs__enabled": ["backend"], "mail__url": inbox.url}
        async with opened_kit(tmp_path, database__url=database_url, **settings) as kit:
            await carts(kit)
            assert await run(kit, "abandoned-carts") == {
                "reminded": 1,
                "no consent": 1,
                "too late": 1,
                "nobody to write to": 1,
            }
            assert sum((await run(kit, "abandoned-carts")).values()) == 0
            await run(kit, "email-queue")
            await run(kit, "frequent")
            assert (await stored(kit, "payments-carts/fresh"))["status"] == "pending"
            reminder = (await stored(kit, "payments-carts/left"))["reminder"]
            mail = await stored(kit, f"emails/{reminder['messageId']}")
    check_mail(inbox)
    assert mail["status"] == "sent"


def check_mail(inbox: Inbox) -> None:
    assert inbox.everyone == ["anna@shop.example"]
    (mail,) = inbox.mails
    assert str(mail.message["subject"]) == SUBJECT
    assert mail.message["list-unsubscribe"]
    body = mail.message.get_body(("plain",))
    assert body is not None
    text = body.get_content()
    assert "Hat" in text
    assert "https://shop.example/cart" in text

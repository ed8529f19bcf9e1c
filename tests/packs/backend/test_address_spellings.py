"""One address has many spellings and one consent: capitals, other letters, their ASCII form."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.packs.backend.marketing.test_sent_campaigns import sent
from tests.packs.backend.test_scheduled_work import HOUR, moment, run, store, stored
from tests.smtp_server import Inbox, smtp_server

from toolgate.packs.backend.mail.addresses import BadAddress, checked_address, normalised
from toolgate.packs.backend.marketing.carts import CARTS
from toolgate.packs.backend.marketing.consent import Recipient
from toolgate.ports.documents import Create
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

WRITTEN, ASCII = "anna@bücher.example", "anna@xn--bcher-kva.example"


@pytest.fixture
def inbox() -> Iterator[Inbox]:
    with smtp_server() as running:
        yield running


@pytest.fixture
async def kit(tmp_path: Path, database_url: str, inbox: Inbox) -> AsyncIterator[Kit]:
    settings: dict[str, Any] = {"packs__enabled": ["backend"], "mail__url": inbox.url}
    async with opened_kit(tmp_path, writes=True, database__url=database_url, **settings) as opened:
        yield opened


def world(kit: Kit) -> Any:
    return kit.app.worlds["backend"].world


async def left_cart(kit: Kit, id: str, **whose: Any) -> None:
    cart = {"status": "pending", "metadata": {"updated": moment(2 * HOUR)}, **whose}
    async with kit.app.gate.database.transaction() as tx:  # as the application stores it
        await world(kit).documents.write(tx, Create(CARTS, id, cart))


@pytest.mark.parametrize(
    ("written", "same"),
    [
        (" Anna@Example.COM ", "anna@example.com"),
        (WRITTEN, ASCII),
        ("Anna@BÜCHER.example", ASCII),
        ("anna@bu\N{COMBINING DIAERESIS}cher.example", ASCII),
        ("anna@XN--BCHER-KVA.example", ASCII),
        ("victim@\N{FULLWIDTH LATIN SMALL LETTER E}xample.com", "victim@example.com"),
        ("victim@example\N{IDEOGRAPHIC FULL STOP}com", "victim@example.com"),
        ("victim@exa\N{SOFT HYPHEN}mple.com", "victim@example.com"),
        ("no address", "no address"),
        ("a@..ü", "a@..ü"),
    ],
)
def test_spellings_of_an_address_are_one(written: str, same: str) -> None:
    assert normalised(written) == same


LETTERS = "aAeEüÜßſ\uff45\u212a\u3002\uff0e.\u00ad-İxn1"


@given(st.text(LETTERS, min_size=1, max_size=12), st.text(LETTERS, max_size=12))
def test_where_mail_goes_is_what_consent_is_asked_of(local: str, domain: str) -> None:
    written = f"{local}@{domain}"
    try:
        goes_to = checked_address(written)
    except BadAddress:
        return
    assert goes_to.key == normalised(written) == normalised(goes_to.key)


async def test_the_link_of_an_international_address_ends_its_mail(kit: Kit, inbox: Inbox) -> None:
    granted = {"consent": {"marketing": {"status": "granted"}}}
    await store(kit, "users/anna", email=WRITTEN, **granted)
    (email, group), consent = (ASCII, "marketing"), world(kit).consent
    async with kit.app.gate.database.transaction() as tx:
        await consent.unsubscribe(tx, email, group, "unsubscribe-link")
        assert await consent.revoke(tx, email, "unsubscribe-link") == 1
    assert (await stored(kit, "users/anna"))["consent"]["marketing"]["status"] == "revoked"
    await left_cart(kit, "one", owner="anna")
    done = await run(kit, "abandoned-carts")
    assert (done["reminded"], done["no consent"]) == (0, 1), done
    assert (await sent(kit, all=True))["delivery"] == {"skipped": 1}
    assert inbox.mails == []


@pytest.mark.parametrize("spelling", ["victim@ｅxample.com", "Victim@Example.com"])
async def test_who_was_deleted_gets_no_reminder_under_another_spelling(
    kit: Kit, inbox: Inbox, spelling: str
) -> None:
    gone = await kit.call("delete_contact", email="victim@example.com")
    assert gone.status == 200, gone.text
    await left_cart(kit, "one", email=spelling)
    done = await run(kit, "abandoned-carts")
    assert (done["reminded"], done["no consent"]) == (0, 1), done
    refused = await kit.call("send_email", to=spelling, subject="x", sender="marketing", copy=False)
    assert refused.status == 409
    assert inbox.mails == []


async def test_a_record_that_revokes_is_found_by_both_spellings(kit: Kit) -> None:
    revoked = {"consent": {"marketing": {"status": "revoked"}}}
    await store(kit, "users/anna", auth={"email": WRITTEN}, **revoked)
    await store(kit, "users/ben", auth={"email": "ben@xn--bcher-kva.example"}, **revoked)
    asked = [Recipient(ASCII), Recipient("Ben@Bücher.example"), Recipient("carl@bücher.example")]
    assert await world(kit).consent.refused(asked) == {ASCII, "ben@xn--bcher-kva.example"}


async def test_two_spellings_get_one_mail(kit: Kit, inbox: Inbox) -> None:
    await store(kit, "users/anna", email=WRITTEN)
    await store(kit, "users/too", email="ANNA@xn--bcher-kva.example")
    await kit.call("create_contact", email=WRITTEN, skipValidation=True)
    assert (await sent(kit, all=True))["delivery"] == {"accepted": 1}
    assert inbox.everyone == [ASCII]


@pytest.mark.parametrize("written", ["Anna@Example.com", "anna@ｅxample.com"])
async def test_a_contact_whose_user_is_excluded_gets_nothing(
    kit: Kit, inbox: Inbox, written: str
) -> None:
    paid = {"product": {"id": "premium"}, "status": "active"}
    await store(kit, "users/anna", auth={"email": written}, subscription=paid)
    for name in ("anna", "ben"):
        await kit.call("create_contact", email=f"{name}@example.com", skipValidation=True)
    campaign = await sent(kit, all=True, excludeSegments=["subscription_paid"])
    assert campaign["delivery"] == {"accepted": 1}
    assert inbox.everyone == ["ben@example.com"]

"""Who may be sent marketing: one place says so, on both databases."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from toolgate.packs.backend.marketing.consent import EVERYTHING, Consent, Recipient
from toolgate.ports.documents import Create
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

REVOKED = {"consent": {"marketing": {"status": "revoked"}}}


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    settings = {"database__url": database_url, "packs__enabled": ["backend"]}
    async with opened_kit(tmp_path, **settings) as opened:
        yield opened


@pytest.fixture
def consent(kit: Kit) -> Consent:
    return kit.app.worlds["backend"].world.consent


async def keep(kit: Kit, uid: str, record: dict[str, Any]) -> None:
    async with kit.app.gate.database.transaction() as tx:
        await kit.app.documents.of("backend").write(tx, Create("users", uid, record))


async def record_of(kit: Kit, uid: str) -> dict[str, Any]:
    return await kit.app.documents.of("backend").get("users", uid) or {}


async def test_who_said_nothing_may_be_mailed(kit: Kit, consent: Consent) -> None:
    await keep(kit, "a", {"auth": {"email": "a@example.com"}})
    await keep(kit, "odd", {"auth": 5, "consent": {"marketing": "revoked"}})
    asked = [
        Recipient("a@example.com", "a"),
        Recipient("b@example.com"),
        Recipient("o@x.io", "odd"),
    ]
    assert await consent.refused(asked, "marketing") == set()
    assert await consent.allows("nobody@example.com")


async def test_a_record_that_revokes_is_heeded_with_and_without_the_users_id(
    kit: Kit, consent: Consent
) -> None:
    await keep(kit, "a", {"auth": {"email": "A@Example.com"}, **REVOKED})
    await keep(kit, "b", {"email": "b@example.com", **REVOKED})
    await keep(kit, "c", {"auth": {"email": "c@example.com"}})
    with_ids = [Recipient(f"{uid}@example.com", uid) for uid in "abc"]
    assert await consent.refused(with_ids) == {"a@example.com", "b@example.com"}
    without = [Recipient("A@Example.com"), Recipient("B@example.com"), Recipient("c@example.com")]
    assert await consent.refused(without) == {"a@example.com", "b@example.com"}


async def test_unsubscribing_from_a_group_leaves_the_others(kit: Kit, consent: Consent) -> None:
    for new in (True, False):
        async with kit.app.gate.database.transaction() as tx:
            assert await consent.unsubscribe(tx, "A@x.io", "newsletter", "one-click") is new
    assert not await consent.allows("a@x.io", "newsletter")
    assert await consent.allows("a@x.io", "marketing")
    assert await consent.allows("a@x.io")


async def test_revoking_reaches_the_list_and_every_record_of_the_address(
    kit: Kit, consent: Consent
) -> None:
    other = {"consent": {"legal": {"status": "granted"}}, "team": "blue"}
    await keep(kit, "a", {"auth": {"email": "a@x.io", "uid": "a"}, **other})
    await keep(kit, "b", {"email": "a@x.io"})
    await keep(kit, "c", {"email": "c@x.io"})
    async with kit.app.gate.database.transaction() as tx:
        assert await consent.revoke(tx, "A@X.io ", "admin") == 2
    record = await record_of(kit, "a")
    marketing = record["consent"].pop("marketing")
    assert (marketing["status"], marketing["source"]) == ("revoked", "admin")
    assert marketing["updated"]["timestampUNIX"] > 0
    assert record == {"auth": {"email": "a@x.io", "uid": "a"}, **other}
    assert "consent" not in await record_of(kit, "c")
    assert not await consent.allows("a@x.io", "marketing")
    # A record that is made later does not lift it.
    await keep(kit, "d", {"email": "a@x.io", "consent": {"marketing": {"status": "granted"}}})
    assert await consent.refused([Recipient("a@x.io", "d")]) == {"a@x.io"}


async def test_who_agrees_again_is_mailed_again(kit: Kit, consent: Consent) -> None:
    await keep(kit, "a", {"email": "a@x.io"})
    async with kit.app.gate.database.transaction() as tx:
        await consent.revoke(tx, "a@x.io", "admin")
    async with kit.app.gate.database.transaction() as tx:
        assert await consent.restore(tx, "a@x.io", "user") == 1
    assert await consent.allows("a@x.io")
    assert (await record_of(kit, "a"))["consent"]["marketing"]["status"] == "granted"


async def test_what_is_rolled_back_was_never_revoked(kit: Kit, consent: Consent) -> None:
    await keep(kit, "a", {"email": "a@x.io"})
    async with kit.app.gate.database.transaction() as tx:
        await consent.revoke(tx, "a@x.io", "admin")
        tx.abandon()
    assert await consent.allows("a@x.io")


async def test_many_are_asked_at_once(kit: Kit, consent: Consent) -> None:
    emails = [f"user{number}@x.io" for number in range(700)]
    async with kit.app.gate.database.transaction() as tx:
        for email in emails[::7]:
            await consent.unsubscribes.add(tx, email, EVERYTHING, "test")
    refused = await consent.refused(Recipient(one, one) for one in emails)
    assert refused == set(emails[::7])

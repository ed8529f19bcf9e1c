"""Who took consent back gets marketing again only when an operator notes that they asked for it."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from toolgate.ports.documents import Create
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

EMAIL = "grace@example.com"
ASKED = {"email": " Grace@Example.com", "reason": "wrote to support on 3 May", "confirmed": True}
TOOL = "operator.consent.restore"


@pytest.fixture
async def kit(tmp_path: Path, database_url: str) -> AsyncIterator[Kit]:
    settings: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["backend"]}
    async with opened_kit(tmp_path, **settings) as opened:
        yield opened


def world(kit: Kit) -> Any:
    return kit.app.worlds["backend"].world


async def test_a_deleted_contact_who_asks_can_be_added_again(kit: Kit) -> None:
    user = {"auth": {"email": EMAIL}}
    async with kit.app.gate.database.transaction() as tx:
        await world(kit).documents.write(tx, Create("users", "g", user))
    await kit.call("delete_contact", email=EMAIL)
    refused = await kit.call("create_contact", email=EMAIL, skipValidation=True)
    assert (refused.status, "consent was revoked" in refused.text) == (400, True)
    done = await kit.send(TOOL, ASKED)
    assert done.error is None, done.text
    assert (done.body["email"], done.body["users"]) == (EMAIL, 1)
    collection, _, id = done.body["record"].partition("/")
    kept = await world(kit).documents.get(collection, id)
    assert (kept["email"], kept["reason"], bool(kept["by"])) == (EMAIL, ASKED["reason"], True)
    record = await world(kit).documents.get("users", "g")
    assert record["consent"]["marketing"]["status"] == "granted"
    assert record["consent"]["marketing"]["source"] == "operator"
    added = await kit.call("create_contact", email=EMAIL, skipValidation=True)
    assert added.error is None, added.text


@pytest.mark.parametrize("group", ["newsletter", "marketing"])
async def test_so_can_who_left_a_group(kit: Kit, group: str) -> None:
    async with kit.app.gate.database.transaction() as tx:
        await world(kit).consent.unsubscribe(tx, EMAIL, group, "test")
    assert (await kit.send(TOOL, ASKED)).error is None
    assert await world(kit).consent.allows(EMAIL, group)
    again = await kit.send(TOOL, ASKED)
    assert (again.body["restored"], again.body["record"]) == (False, None)


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        ({"confirmed": False}, "confirmed must be true"),
        ({"reason": "x"}, "reason"),
        ({"reason": "a\nb c"}, "reason must be one line"),
        ({"email": "nobody"}, "email is not an email address"),
    ],
)
async def test_nothing_changes_without_a_word_of_the_person(
    kit: Kit, odd: dict[str, Any], told: str
) -> None:
    await kit.call("delete_contact", email=EMAIL)
    refused = await kit.send(TOOL, ASKED | odd)
    assert (refused.status, told in refused.text) == (400, True), refused.text
    assert not await world(kit).consent.allows(EMAIL)


async def test_a_dry_run_restores_nothing(kit: Kit) -> None:
    await kit.call("delete_contact", email=EMAIL)
    assert (await kit.send(TOOL, ASKED, dry_run=True)).error is None
    assert not await world(kit).consent.allows(EMAIL)

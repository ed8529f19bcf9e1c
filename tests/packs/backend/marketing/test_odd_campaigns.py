"""Campaigns that others wrote: one that cannot be read fails in words, and stops no other."""

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.packs.backend.marketing.test_sent_campaigns import opened

from toolgate.db.workflow_holds import hold_schedules
from toolgate.gate.audit_records import timestamp
from toolgate.packs.backend.marketing.campaigns import COLLECTION
from toolgate.packs.backend.marketing.reading import problem_of
from toolgate.ports.documents import Set
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

SETTINGS = {"name": "News", "subject": "News", "all": True, "sender": "newsletter"}
WEEKLY = {"recurrence": {"pattern": "weekly"}}
GOOD: dict[str, Any] = {"type": "email", "sendAt": 5, "status": "pending", "settings": SETTINGS}
ODD: dict[str, tuple[dict[str, Any], str]] = {
    "type": ({"type": None, **WEEKLY}, "type must be one of: email, push"),
    "settings": ({"settings": None}, "settings must be a map with name, subject and sender"),
    "subject": ({"settings": {**SETTINGS, "subject": 5}}, "settings.subject must be a text"),
    "sender": ({"settings": {**SETTINGS, "sender": []}}, "settings.sender must be one of"),
    "segments": ({"settings": {**SETTINGS, "segments": ["x"]}}, "names no segment"),
    "first": ({"firstAt": "x", **WEEKLY}, "firstAt must be unix seconds, 0 or more"),
    "early": ({"sendAt": -1e18, **WEEKLY}, "sendAt must be unix seconds, 0 or more"),
    "metadata": ({"metadata": 5, "type": "fax"}, "type must be one of: email, push"),
    "recurrence": ({"recurrence": {"pattern": "never"}}, "recurrence cannot be read"),
    "processing": ({"status": "processing", "lease": "x", "type": 5}, "type must be one of"),
}


async def keep(kit: Kit, id: str, campaign: dict[str, Any]) -> None:
    """As an application stores it."""
    documents = kit.app.documents.of("backend")
    async with kit.app.gate.database.transaction() as tx:
        await documents.write(tx, Set(COLLECTION, id, campaign))


async def campaign(kit: Kit, id: str) -> dict[str, Any]:
    return await kit.app.documents.of("backend").get(COLLECTION, id) or {}


async def test_what_cannot_be_read_fails_in_words_and_the_others_begin(
    tmp_path: Path, database_url: str
) -> None:
    async with opened(tmp_path, database__url=database_url) as kit:
        # The schedule of every minute would begin them here, too.
        await kit.app.gate.database.write(lambda c: hold_schedules(c, timestamp()))
        for name, (other, _) in ODD.items():
            given = {**GOOD, **other}
            await keep(kit, name, {key: one for key, one in given.items() if one is not None})
        await keep(kit, "good", {**GOOD, "sendAt": int(time.time())})
        await keep(kit, "weekly", {**GOOD, "sendAt": int(time.time()), **WEEKLY})
        gone = {"status": "processing", "run": "gone", "lease": 5}
        await keep(kit, "left", {**GOOD, **gone})
        done = await kit.app.worlds["backend"].world.marketing.begin_due()
        assert done == {"begun": 2, "settled": 2}
        for name, (_, words) in ODD.items():
            odd = await campaign(kit, name)
            assert odd["status"] == "failed", (name, odd)
            assert words in odd["error"]
        for name in ("good", "left"):
            assert (await campaign(kit, name))["run"] != "gone"
        assert (await campaign(kit, "weekly"))["sendAt"] > time.time()


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=4,
)
documents = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["email", "push"]) | values,
        "sendAt": values,
        "firstAt": values,
        "recurrence": st.just({"pattern": "monthly"}) | values,
        "settings": st.fixed_dictionaries(
            {}, optional={name: values for name in (*SETTINGS, "segments", "test", "data")}
        )
        | values,
    },
)


@given(documents)
@settings(max_examples=200, deadline=None)
def test_of_any_document_it_is_said_what_is_wrong(document: dict[str, Any]) -> None:
    problem = problem_of(document)
    assert problem is None or problem.partition(" ")[0].partition(".")[0] in {
        "type", "sendAt", "firstAt", "recurrence", "settings"
    }  # fmt: skip

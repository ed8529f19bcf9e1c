"""Every document store keeps the promises of `DocumentStore`."""

import uuid
from collections.abc import Callable

import pytest
from tests.contract.documents import (
    filters,
    ordering,
    reading,
    transactions,
    transforms,
    writing,
)
from tests.contract.documents.room import CASES, Case, Room
from tests.firestore import emulator

from toolgate.db.transactions import Transaction
from toolgate.ports.documents import DocumentStore

pytestmark = pytest.mark.anyio

MODULES = [reading, filters, ordering, writing, transforms, transactions]
"""Each adds its cases as it is imported."""

CANNOT = {
    "firestore": emulator.CANNOT,
    "postgres": {
        "concurrent_works_do_not_change_what_others_queried": "locks the documents that a query "
        "found, not those that it would have found a moment later"
    },
}
"""What a store gets wrong, each with what it does instead."""
ids = [case.__name__ for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=ids)
async def test_documents(
    case: Case,
    store_kind: str,
    store: DocumentStore,
    tx_factory: Callable[[], Transaction],
    request: pytest.FixtureRequest,
) -> None:
    if reason := CANNOT.get(store_kind, {}).get(case.__name__):
        # A case that passes has no place in a list; only a race may be won by chance.
        strict = store_kind == "firestore"
        request.applymarker(pytest.mark.xfail(reason=f"{store_kind} {reason}", strict=strict))
    await case(Room(store, tx_factory, f"c{uuid.uuid4().hex}"))


def test_every_case_that_a_store_is_spared_exists() -> None:
    assert {name for spared in CANNOT.values() for name in spared} <= set(ids)

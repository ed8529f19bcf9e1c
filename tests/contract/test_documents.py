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

ids = [case.__name__ for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=ids)
async def test_documents(
    case: Case,
    store_kind: str,
    store: DocumentStore,
    tx_factory: Callable[[], Transaction],
    request: pytest.FixtureRequest,
) -> None:
    if store_kind == "firestore" and (reason := emulator.CANNOT.get(case.__name__)):
        if reason == emulator.NO_CONTENTION:
            pytest.skip(f"the emulator {reason}, and a race may be won by chance")
        # A case that passes has no place in the list.
        request.applymarker(pytest.mark.xfail(reason=f"the emulator {reason}", strict=True))
    await case(Room(store, tx_factory, f"c{uuid.uuid4().hex}"))


def test_every_case_that_the_emulator_is_spared_exists() -> None:
    assert set(emulator.CANNOT) <= set(ids)

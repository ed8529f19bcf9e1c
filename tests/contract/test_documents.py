"""Every document store keeps the promises of `DocumentStore`."""

import uuid
from collections.abc import Callable

import pytest
from tests.contract.documents_contract import CASES, Case, Room
from tests.firestore import emulator

from toolgate.db.transactions import Transaction
from toolgate.ports.documents import DocumentStore

pytestmark = pytest.mark.anyio

ids = [case.__name__ for case in CASES]


@pytest.mark.parametrize("case", CASES, ids=ids)
async def test_documents(
    case: Case, store_kind: str, store: DocumentStore, tx_factory: Callable[[], Transaction]
) -> None:
    if store_kind == "firestore" and (reason := emulator.CANNOT.get(case.__name__)):
        pytest.skip(f"{case.__name__}: the emulator {reason}")
    await case(Room(store, tx_factory, f"c{uuid.uuid4().hex}"))


def test_every_case_the_emulator_is_spared_exists() -> None:
    assert set(emulator.CANNOT) <= set(ids)

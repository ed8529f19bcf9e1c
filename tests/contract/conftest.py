"""The stores the contracts run over: one parameter each."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.contract.document_stores import KINDS, Opened, emulator_host, opened_documents
from tests.loops import one_loop

from toolgate.db.transactions import Transaction
from toolgate.ports.documents import DocumentStore

__all__ = ["emulator_host", "one_loop"]

pytest.register_assert_rewrite("tests.contract.documents")


@pytest.fixture(params=KINDS)
def store_kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def opened(
    store_kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[Opened]:
    async with opened_documents(store_kind, request, tmp_path) as store:
        yield store


@pytest.fixture
def store(opened: Opened) -> DocumentStore:
    return opened[0]


@pytest.fixture
def tx_factory(opened: Opened) -> Callable[[], Transaction]:
    return opened[1]

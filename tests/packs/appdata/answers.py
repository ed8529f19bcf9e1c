"""Comparing answers letter for letter, and stores that watch or fail."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from toolgate.db.transactions import Transaction
from toolgate.gate.errors import GateError
from toolgate.gate.outcomes import Outcome
from toolgate.ports.documents import Fields, Filter, StoredDocument, StoreUnavailable

NOT_ANSWERING = "Failed to initialize Firestore: no credentials"


def assert_answer(outcome: Outcome, expected: Any) -> None:
    """The answer is good and is this one: same keys in the same order, same values."""
    assert outcome.error is None, outcome.body
    assert json.dumps(outcome.body) == json.dumps(expected)
    assert outcome.raw.decode() == json.dumps(expected, separators=(",", ":"), ensure_ascii=False)


def assert_failure(outcome: Outcome, error: type[GateError], body: dict[str, Any]) -> None:
    """The answer is this failure, letter for letter."""
    assert type(outcome.error) is error, outcome.body
    assert json.dumps(outcome.body) == json.dumps(body)
    assert outcome.raw.decode() == json.dumps(body, separators=(",", ":"), ensure_ascii=False)


@dataclass(slots=True)
class RecordingStore:
    """Notes every call, and holds nothing."""

    calls: list[str] = field(default_factory=list[str])
    joins_transaction: bool = False

    async def get(self, collection: str, document_id: str) -> Fields | None:
        self.calls.append(f"get {collection}/{document_id}")
        return None

    async def query(
        self, collection: str, filters: Sequence[Filter], limit: int
    ) -> Sequence[StoredDocument]:
        self.calls.append(f"query {collection} limit {limit}")
        return []

    async def collections(self) -> Sequence[str]:
        self.calls.append("collections")
        return []

    async def create(
        self, tx: Transaction, collection: str, fields: Fields, document_id: str | None
    ) -> str:
        self.calls.append(f"create {collection}/{document_id}")
        return document_id or "made"

    async def check(self) -> None:
        self.calls.append("check")

    async def close(self) -> None:
        self.calls.append("close")


class FailingStore(RecordingStore):
    """Does not answer, whatever is asked."""

    async def get(self, collection: str, document_id: str) -> Fields | None:
        raise StoreUnavailable(NOT_ANSWERING)

    async def query(
        self, collection: str, filters: Sequence[Filter], limit: int
    ) -> Sequence[StoredDocument]:
        raise StoreUnavailable(NOT_ANSWERING)

    async def create(
        self, tx: Transaction, collection: str, fields: Fields, document_id: str | None
    ) -> str:
        raise StoreUnavailable(NOT_ANSWERING)

"""Comparing answers letter for letter, and stores that watch or fail."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from toolgate.db.transactions import Transaction
from toolgate.gate.errors import GateError
from toolgate.gate.outcomes import Outcome
from toolgate.ports.documents import (
    DocumentTransaction,
    Fields,
    Query,
    Reference,
    StoredDocument,
    StoreUnavailable,
    Write,
)

T = TypeVar("T")

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

    async def get_many(self, references: Sequence[Reference]) -> Sequence[Fields | None]:
        return [await self.get(*one) for one in references]

    async def query(self, query: Query) -> Sequence[StoredDocument]:
        self.calls.append(f"query {query.collection} limit {query.limit}")
        return []

    async def collections(self, parent: Reference | None = None) -> Sequence[str]:
        self.calls.append("collections")
        return []

    async def write(
        self, tx: Transaction, *writes: Write, conflict: Exception | None = None
    ) -> None:
        for one in writes:
            self.calls.append(f"{type(one).__name__} {one.collection}/{one.document_id}")

    async def transact(
        self, tx: Transaction, work: Callable[[DocumentTransaction], Awaitable[T]]
    ) -> T:
        raise NotImplementedError

    async def check(self) -> None:
        self.calls.append("check")

    async def close(self) -> None:
        self.calls.append("close")


class FailingStore(RecordingStore):
    """Does not answer, whatever is asked."""

    async def get(self, collection: str, document_id: str) -> Fields | None:
        raise StoreUnavailable(NOT_ANSWERING)

    async def query(self, query: Query) -> Sequence[StoredDocument]:
        raise StoreUnavailable(NOT_ANSWERING)

    async def write(
        self, tx: Transaction, *writes: Write, conflict: Exception | None = None
    ) -> None:
        raise StoreUnavailable(NOT_ANSWERING)

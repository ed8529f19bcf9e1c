"""One notification to many tokens: batch by batch, each told before and after it is sent.

Firebase takes no key by which it would know a message again. So a batch is claimed before it is
sent: if the process dies meanwhile, nobody knows which of its messages went out, and the next
process goes on behind it. No message is sent twice; those of that one batch are told as unknown.
Where the service itself refuses, it is known which messages were not taken: they are kept, for
when the delivery goes on.
"""

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction
from toolgate.packs.backend.push.port import (
    BATCH,
    Delivery,
    Notification,
    Push,
    PushResult,
    PushUnavailable,
)
from toolgate.ports.documents import (
    DOCUMENT_ID,
    Cursor,
    Delete,
    DocumentStore,
    DocumentTransaction,
    Filter,
    Operator,
    Order,
    Query,
    StoredDocument,
)
from toolgate.workflows.declarations import RunStopped

TOKENS = "notifications"
"""The collection of tokens: a document's id is the token; fields `token`, `owner`, `tags`."""
INTERRUPTED = "INTERRUPTED"
OF_ONE_TOKEN = frozenset({"SENDER_ID_MISMATCH"})
"""Reasons that lie with a token: it belongs to another project, so it stays."""
UNSENT = (Delivery.FAILED, Delivery.UNKNOWN)
OF_THE_NOTIFICATION = frozenset({"INVALID_ARGUMENT"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """Whom a notification is for: one token, or the documents that pass every filter."""

    token: str | None = None
    tags: Sequence[str] | None = None
    owner: str | None = None
    limit: int | None = None

    def query(self, after: str | None, size: int) -> Query:
        """The next tokens, in their order."""
        filters: list[Filter] = []
        if self.tags is not None:
            filters.append(Filter("tags", Operator.ARRAY_CONTAINS_ANY, list(self.tags)))
        if self.owner is not None:
            filters.append(Filter("owner", Operator.EQUAL, self.owner))
        start = None if after is None else Cursor((after,), inclusive=False)
        return Query(TOKENS, filters, [Order(DOCUMENT_ID)], limit=size, start=start)


@dataclass(frozen=True, slots=True)
class Tally:
    """How far a delivery has come; also its checkpoint."""

    subscribers: int = 0
    batches: int = 0
    sent: int = 0
    deleted: int = 0
    failed: dict[str, int] = field(default_factory=dict[str, int])
    """Messages that were not sent although their token may be good, by reason."""
    after: str | None = None
    """The id behind which it goes on."""
    claimed: int = 0
    """Messages of a batch that is on its way."""
    error: str | None = None
    """Why it ended early."""
    left: list[str] = field(default_factory=list[str])
    """Documents before `after` whose messages were surely not taken when it ended early."""

    @classmethod
    def of(cls, state: dict[str, Any]) -> "Tally":
        """From a checkpoint: what was on its way then is not tried again."""
        tally = replace(cls(**state), error=None)
        return tally.failing({INTERRUPTED: tally.claimed}, claimed=0) if tally.claimed else tally

    def state(self) -> dict[str, Any]:
        """As a checkpoint."""
        return asdict(self)

    def claim(self, batch: Sequence[StoredDocument]) -> "Tally":
        """About to send to these: to those that are left, or to the next ones."""
        claimed = replace(self, claimed=len(batch), left=[])
        if batch[0].id in self.left:  # they were counted before
            return claimed
        return replace(
            claimed,
            subscribers=self.subscribers + len(batch),
            batches=self.batches + 1,
            after=batch[-1].id,
        )

    def completed(self, results: Sequence[PushResult], deleted: int) -> "Tally":
        """The batch that was on its way has these results.

        Messages to tokens that nobody has count as deleted, once they are.
        """
        sent = sum(one.delivery is Delivery.SENT for one in results)
        failed = Counter(one.reason or one.delivery for one in results if one.delivery in UNSENT)
        done = self.failing(failed, claimed=0)
        return replace(done, sent=self.sent + sent, deleted=self.deleted + deleted)

    def ended_early(self, error: str, left: list[str]) -> "Tally":
        """No other batch is to follow now, and these of the last one were not taken."""
        return replace(self, error=error, left=left)

    def failing(self, more: dict[str, int], *, claimed: int) -> "Tally":
        """With more messages that were not sent."""
        failed = Counter(self.failed) + Counter(more)
        return replace(self, failed=dict(sorted(failed.items())), claimed=claimed)


class Progress(Protocol):
    """Where a delivery notes how far it has come; a run of a workflow is one."""

    @property
    def state(self) -> dict[str, Any]:
        """The last checkpoint, empty at first."""
        ...

    async def checkpoint(
        self,
        state: dict[str, Any],
        *,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
    ) -> None:
        """Store it."""
        ...

    async def checkpoint_in(
        self,
        tx: Transaction,
        state: dict[str, Any],
        *,
        done: float | None = None,
        total: float | None = None,
        message: str | None = None,
    ) -> None:
        """Store it in a transaction."""
        ...


@dataclass(frozen=True, slots=True)
class Deliveries:
    """Sends notifications to the tokens of the pack's documents."""

    push: Push
    documents: DocumentStore
    database: Database

    async def deliver(
        self, notification: Notification, audience: Audience, progress: Progress
    ) -> Tally:
        """Send, from where an earlier attempt has come; `error` of the tally says why it ended."""
        tally = Tally.of(progress.state)
        while batch := await self._next_batch(audience, tally):
            tally = await self._claim(tally, batch, progress)
            results, error = await self._send(notification, batch)
            left = _left_of(batch, results) if error else set[str]()
            results = [one for one in results if one.token not in left]
            gone = [one.token for one in results if one.delivery is Delivery.GONE]
            async with self.database.transaction() as tx:
                deleted = await self._delete(tx, batch, gone)
                tally = tally.completed(results, deleted)
                if error:
                    ids = [one.id for one in batch if token_of(one) in left]
                    tally = tally.ended_early(error, ids)
                await progress.checkpoint_in(
                    tx, tally.state(), done=tally.sent, message=_told(tally)
                )
            if error or audience.token is not None:
                break
        return tally

    async def _claim(
        self, tally: Tally, batch: Sequence[StoredDocument], progress: Progress
    ) -> Tally:
        claimed = tally.claim(batch)
        try:
            await progress.checkpoint(claimed.state(), done=tally.sent, message=_told(claimed))
        except RunStopped:
            # It is stored all the same, and nothing was sent: who goes on has to send this batch.
            with contextlib.suppress(RunStopped):
                await progress.checkpoint(tally.state())
            raise
        return claimed

    async def _send(
        self, notification: Notification, batch: Sequence[StoredDocument]
    ) -> tuple[Sequence[PushResult], str | None]:
        """The results of a batch, and why no other is to follow."""
        try:
            results = await self.push.send(notification, [token_of(one) for one in batch])
        except PushUnavailable as problem:
            return problem.results, problem.message
        return results, _fruitless(results)

    async def count(self, audience: Audience, come: Tally | None = None) -> Tally:
        """How many it would be sent to; with those it has come to, where it has begun."""
        tally = replace(come, left=[]) if come else Tally()
        while batch := await self._next_batch(audience, tally):
            tally = replace(tally.claim(batch), claimed=0)
            if audience.token is not None:
                break
        return tally

    async def _next_batch(self, audience: Audience, tally: Tally) -> Sequence[StoredDocument]:
        if tally.left and (found := await self._still_there(audience, tally.left)):
            return found
        left = BATCH
        if audience.limit is not None:
            left = min(left, audience.limit - tally.subscribers)
        if left <= 0 or (audience.token is not None and tally.subscribers):
            return []
        if audience.token is not None:
            return [StoredDocument(audience.token, {})]
        return await self.documents.query(audience.query(tally.after, left))

    async def _still_there(
        self, audience: Audience, ids: Sequence[str]
    ) -> Sequence[StoredDocument]:
        """Those of an earlier attempt who did not unsubscribe meanwhile."""
        if audience.token is not None:
            return [StoredDocument(audience.token, {})]
        there = await self.documents.get_many([(TOKENS, id) for id in ids])
        return [
            StoredDocument(id, fields)
            for id, fields in zip(ids, there, strict=True)
            if fields is not None
        ]

    async def _delete(
        self, tx: Transaction, batch: Sequence[StoredDocument], gone: Sequence[str]
    ) -> int:
        """Delete the documents of tokens that nobody has; how many there were."""
        dead = set(gone)
        return await delete_tokens(
            tx, self.documents, [one.id for one in batch if token_of(one) in dead]
        )


async def delete_tokens(tx: Transaction, store: DocumentStore, ids: Sequence[str]) -> int:
    """Delete these documents; how many of them there were."""
    places = [(TOKENS, id) for id in ids]
    if not places:
        return 0

    async def work(documents: DocumentTransaction) -> int:
        there = await documents.get_many(places)
        found = [at for at, fields in zip(places, there, strict=True) if fields is not None]
        documents.write(*(Delete(*at) for at in found))
        return len(found)

    return await store.transact(tx, work)


def token_of(one: StoredDocument) -> str:
    """The token of a subscriber: the field, or else the id of the document."""
    token = one.fields.get("token")
    return token if isinstance(token, str) and token else one.id


def _left_of(batch: Sequence[StoredDocument], results: Sequence[PushResult]) -> set[str]:
    """Tokens of a batch that ended early whose messages were surely not taken."""
    tried = {
        one.token
        for one in results
        if one.delivery is not Delivery.FAILED or one.reason in OF_ONE_TOKEN
    }
    return {token_of(one) for one in batch} - tried


def _fruitless(results: Sequence[PushResult]) -> str | None:
    """What to say where a whole batch failed for reasons that do not lie with its tokens."""
    reasons = {one.reason or one.delivery for one in results}
    if any(one.delivery not in UNSENT for one in results) or reasons & OF_ONE_TOKEN:
        return None
    some, why = f"none of {len(results)} messages", ", ".join(sorted(reasons))
    if any(one.delivery is Delivery.UNKNOWN for one in results):
        return f"The push service confirmed {some}: {why}. Some may have been sent all the same."
    told = f"The push service took {some}: {why}."
    step = "Change the notification." if reasons <= OF_THE_NOTIFICATION else "Try again later."
    return f"{told} {step}"


def _told(tally: Tally) -> str:
    return f"{tally.sent} sent, batch {tally.batches}"

"""`daily/data-requests`: people who ask for their data, or to be forgotten.

The application stores such a request as the document `data-requests/ID`: `uid`, `type` (`export` or
`deletion`), `status` `pending`; whoever changes it before it is met is heard. An export becomes the
document `data-exports/ID`, and where that is too large, names the documents below it that hold its
parts. What is deleted goes in the commit that says so. Orders stay: books must be kept.
"""

from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from toolgate.db.row_writes import weight_of
from toolgate.db.transactions import Transaction
from toolgate.gate.errors import InvalidArguments
from toolgate.packs.backend.marketing.consent import emails_of, normalised
from toolgate.packs.backend.paging import pages_of
from toolgate.packs.backend.payments.payments import account_of
from toolgate.packs.backend.payments.preconditions import check_paid
from toolgate.packs.backend.push.delivery import TOKENS
from toolgate.ports.documents import (
    Delete,
    DocumentRefused,
    DocumentTransaction,
    Fields,
    Filter,
    Merge,
    Operator,
    Query,
    Set,
    StoredDocument,
    Write,
)
from toolgate.ports.filters import field_at
from toolgate.ports.rules import MAX_DOCUMENT_BYTES, broken_id_rule
from toolgate.ports.users import USERS, timestamp_record, without_secrets
from toolgate.workflows.declarations import Run, Workflow

if TYPE_CHECKING:
    from toolgate.packs.backend.world import BackendWorld

REQUESTS, EXPORTS, PARTS = "data-requests", "data-exports", "parts"
RECENT = timedelta(days=1)
"""So long an export answers further requests of its user."""
MAX_WHOLE_BYTES = MAX_DOCUMENT_BYTES // 2
PENDING = Filter("status", Operator.EQUAL, "pending")
SOURCE = "data-request"
COMPLETED, REFUSED = "completed", "refused"


class Refused(Exception):
    """A request that cannot be met; the message says why."""


class Changed(Exception):
    """Somebody changed or withdrew a request since it was read: nothing is done about it now."""


async def answer_requests(run: "Run[BackendWorld]") -> dict[str, Any]:
    """Meet each of them, or say why not."""
    counts = {"exported": 0, "deleted": 0, "refused": 0, **run.state}
    async for page in pages_of(run.world.documents, REQUESTS, PENDING):
        for request in page:
            with suppress(Changed):
                counts[await _answer(run, request)] += 1
            await run.checkpoint(counts, done=sum(counts.values()))
    return counts


async def _answer(run: "Run[BackendWorld]", request: StoredDocument) -> str:
    try:
        match request.fields.get("type"):
            case "export":
                await _export(run, request)
                return "exported"
            case "deletion":
                await _delete(run, request)
                return "deleted"
            case _:
                raise Refused("type must be one of: export, deletion")
    except (Refused, DocumentRefused) as problem:
        async with run.transaction() as tx:
            await _store(run.world, tx, request, _noted(request, REFUSED, str(problem)))
        return "refused"


async def _store(
    world: "BackendWorld", tx: Transaction, request: StoredDocument, *writes: Write
) -> None:
    """Do these if the request is still what was read; else raise, and the transaction with it."""

    async def work(documents: DocumentTransaction) -> None:
        if await documents.get(REQUESTS, request.id) != request.fields:
            raise Changed
        documents.write(*writes)

    await world.documents.transact(tx, work)


async def _export(run: "Run[BackendWorld]", request: StoredDocument) -> None:
    """Everything that the pack has on a user; of a user who asks again and again, one a day."""
    uid, record = await _user(run.world, request)
    place, writes = await _recent_export(run.world, uid), list[Write]()
    if place is None:
        place, writes = f"{EXPORTS}/{request.id}", await _exported(run.world, uid, record, request)
    async with run.transaction() as tx:
        note = _noted(request, COMPLETED, place)
        await _store(run.world, tx, request, *writes, note)


async def _recent_export(world: "BackendWorld", uid: str) -> str | None:
    found = await world.documents.query(Query(EXPORTS, (Filter("uid", Operator.EQUAL, uid),)))
    since = timestamp_record()["timestampUNIX"] - RECENT.total_seconds()
    made = [(field_at(one.fields, ["created", "timestampUNIX"]), one.id) for one in found]
    recent = [(at, id) for at, id in made if isinstance(at, int | float) and at > since]
    return f"{EXPORTS}/{max(recent)[1]}" if recent else None


async def _exported(
    world: "BackendWorld", uid: str, record: Fields, request: StoredDocument
) -> list[Write]:
    """An export as documents: one, or one for each record where they are too large for that."""
    contacts = [await world.contacts.list.get(normalised(one)) for one in emails_of(record)]
    user = without_secrets(record)
    tokens = [one.fields for one in await world.documents.query(_tokens_of(uid))]
    export: dict[str, Any] = {
        "uid": uid,
        "contacts": [
            {"email": one.contact.email, "source": one.contact.source, "tags": [*one.contact.tags]}
            for one in contacts
            if one is not None and not one.removed
        ],
        "created": timestamp_record(),
    }
    whole = {**export, "user": user, "notifications": tokens}
    if weight_of(whole, MAX_WHOLE_BYTES) <= MAX_WHOLE_BYTES:
        return [Set(EXPORTS, request.id, whole)]
    below = f"{EXPORTS}/{request.id}/{PARTS}"
    parts = {"user": user} | {f"notification-{at}": one for at, one in enumerate(tokens, 1)}
    export["parts"] = [f"{below}/{name}" for name in parts]
    return [
        Set(EXPORTS, request.id, export),
        *(Set(below, name, fields) for name, fields in parts.items()),
    ]


async def _delete(run: "Run[BackendWorld]", request: StoredDocument) -> None:
    """The record, devices, exports and contact of a user who pays for nothing any more."""
    world = run.world
    uid, record = await _user(world, request)
    account = account_of(uid, record, world.payments.products)
    try:
        check_paid(account)
        paid = account.subscription["status"] != "cancelled"
    except InvalidArguments:
        paid = False
    if paid:
        raise Refused("the user has a subscription; cancel it first, then ask again")
    tokens = await world.documents.query(_tokens_of(uid))
    exports = await world.documents.query(Query(EXPORTS, (Filter("uid", Operator.EQUAL, uid),)))
    gone: list[Write] = [Delete(TOKENS, one.id) for one in tokens]
    gone += [Delete(EXPORTS, one.id) for one in exports]
    async with run.transaction() as tx:
        for email in map(normalised, emails_of(record)):
            await world.consent.revoke(tx, email, SOURCE)
            pending = world.contacts.provider is not None
            await world.contacts.list.remove(tx, email, pending=pending)
        note = _noted(request, COMPLETED, f"{USERS}/{uid} is deleted")
        await _store(world, tx, request, *gone, Delete(USERS, uid), note)


async def _user(world: "BackendWorld", request: StoredDocument) -> tuple[str, Fields]:
    uid = request.fields.get("uid")
    if not isinstance(uid, str) or broken_id_rule(uid):
        raise Refused("uid must be the id of a user")
    record = await world.documents.get(USERS, uid)
    if record is None:
        raise Refused("uid names no user")
    return uid, record


def _tokens_of(uid: str) -> Query:
    return Query(TOKENS, (Filter("owner", Operator.EQUAL, uid),))


def _noted(request: StoredDocument, status: str, words: str) -> Merge:
    said = {"status": status, "result": words, "metadata": {"updated": timestamp_record()}}
    return Merge(REQUESTS, request.id, said)


DATA_REQUESTS: "Workflow[BackendWorld]" = Workflow(
    name="daily/data-requests",
    summary="Answers requests for a user's data, and to be forgotten.",
    run=answer_requests,
)

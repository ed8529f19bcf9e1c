"""`daily/data-requests`: people who ask for their data, or to be forgotten.

The application stores such a request as the document `data-requests/ID`: `uid`, `type` (`export` or
`deletion`), `status` `pending`. An export becomes the document `data-exports/ID`. What is deleted
goes in the commit that says so. Orders stay: books must be kept.
"""

from typing import TYPE_CHECKING, Any

from toolgate.gate.errors import InvalidArguments
from toolgate.packs.backend.marketing.consent import emails_of, normalised
from toolgate.packs.backend.paging import pages_of
from toolgate.packs.backend.payments.payments import account_of
from toolgate.packs.backend.payments.preconditions import check_paid
from toolgate.packs.backend.push.delivery import TOKENS
from toolgate.ports.documents import (
    Delete,
    Fields,
    Filter,
    Merge,
    Operator,
    Query,
    Set,
    StoredDocument,
    Write,
)
from toolgate.ports.rules import broken_id_rule
from toolgate.ports.users import USERS, timestamp_record, without_secrets
from toolgate.workflows.declarations import Run, Workflow

if TYPE_CHECKING:
    from toolgate.packs.backend.world import BackendWorld

REQUESTS, EXPORTS = "data-requests", "data-exports"
PENDING = Filter("status", Operator.EQUAL, "pending")
SOURCE = "data-request"
COMPLETED, REFUSED = "completed", "refused"


class Refused(Exception):
    """A request that cannot be met; the message says why."""


async def answer_requests(run: "Run[BackendWorld]") -> dict[str, Any]:
    """Meet each of them, or say why not."""
    counts = {"exported": 0, "deleted": 0, "refused": 0, **run.state}
    async for page in pages_of(run.world.documents, REQUESTS, PENDING):
        for request in page:
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
    except Refused as problem:
        async with run.transaction() as tx:
            note = _noted(request, REFUSED, str(problem))
            await run.world.documents.write(tx, note)
        return "refused"


async def _export(run: "Run[BackendWorld]", request: StoredDocument) -> None:
    """Everything that the pack has on a user, in one document."""
    documents = run.world.documents
    uid, record = await _user(run.world, request)
    contacts = [await run.world.contacts.list.get(normalised(one)) for one in emails_of(record)]
    export: dict[str, Any] = {
        "uid": uid,
        "user": without_secrets(record),
        "notifications": [one.fields for one in await documents.query(_tokens_of(uid))],
        "contacts": [
            {"email": one.contact.email, "source": one.contact.source, "tags": [*one.contact.tags]}
            for one in contacts
            if one is not None and not one.removed
        ],
        "created": timestamp_record(),
    }
    async with run.transaction() as tx:
        note = _noted(request, COMPLETED, f"{EXPORTS}/{request.id}")
        await documents.write(tx, Set(EXPORTS, request.id, export), note)


async def _delete(run: "Run[BackendWorld]", request: StoredDocument) -> None:
    """The record, the devices and the contact of a user who pays for nothing any more."""
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
    gone: list[Write] = [Delete(TOKENS, one.id) for one in tokens]
    async with run.transaction() as tx:
        for email in map(normalised, emails_of(record)):
            await world.consent.revoke(tx, email, SOURCE)
            pending = world.contacts.provider is not None
            await world.contacts.list.remove(tx, email, pending=pending)
        note = _noted(request, COMPLETED, f"{USERS}/{uid} is deleted")
        await world.documents.write(tx, *gone, Delete(USERS, uid), note)


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

"""`daily/blog-auto-publisher`: posts that wait for their day.

They are documents `posts-queue/ID`: `post` as `create_post` takes it, `publishAt` (ISO 8601 or unix
seconds, or nothing for the next time), and `status` `pending`, which becomes `published` or
`failed` in the commit that notes the commit in the repository as done. Who edits or withdraws one
before its intent is stored is heard.
"""

from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any

from pydantic import ValidationError

from toolgate.db.transactions import Transaction
from toolgate.gate.arguments import problem_of
from toolgate.gate.audit_records import new_id
from toolgate.gate.errors import Conflict, InvalidArguments
from toolgate.packs.backend.dates import BadDate, read_due
from toolgate.packs.backend.paging import pages_of
from toolgate.packs.backend.publishing.posts import PostCall, Published
from toolgate.packs.backend.tools.publishing import PostRequest, new_post
from toolgate.packs.backend.world import BackendWorld
from toolgate.ports.documents import (
    DocumentTransaction,
    Fields,
    Filter,
    Merge,
    Operator,
    StoredDocument,
    Write,
)
from toolgate.ports.users import timestamp_record
from toolgate.workflows.declarations import Run, Workflow

QUEUE = "posts-queue"
PENDING = Filter("status", Operator.EQUAL, "pending")


class Changed(Exception):
    """Somebody edited or withdrew a post since it was read: nothing is done about it now."""


async def publish_due(run: Run[BackendWorld]) -> dict[str, Any]:
    """Publish what is due; the rest waits."""
    counts = {"published": 0, "failed": 0, "waiting": 0}
    counts |= {name: run.state.get(name, 0) for name in ("published", "failed")}
    now = run.world.posts.now()
    async for page in pages_of(run.world.documents, QUEUE, PENDING):
        for queued in page:
            with suppress(Changed):
                counts[await _publish(run, queued, now)] += 1
            await run.checkpoint(counts, done=sum(counts.values()))
    return counts


async def _publish(run: Run[BackendWorld], queued: StoredDocument, now: datetime) -> str:
    world = run.world
    try:
        if not _is_due(queued.fields, now):
            return "waiting"
        request = PostRequest.model_validate(queued.fields.get("post"))
        post = new_post(world, request)
        arguments = {"queued": queued.id, "create": request.model_dump(mode="json")}
        check = partial(_write_unchanged, world, queued)
        call = PostCall(new_id(), f"workflow:{QUEUE}", arguments, check)
        async with run.transaction() as tx:
            done = await world.posts.create(call, post, tx)
            told = _told(now, "published", done)
            await world.documents.write(tx, Merge(QUEUE, queued.id, told))
    except (BadDate, Conflict, InvalidArguments, ValidationError) as problem:
        words = problem_of(problem) if isinstance(problem, ValidationError) else str(problem)
        words = f"publishAt {words}" if isinstance(problem, BadDate) else words
        async with run.transaction() as tx:
            failed = _told(now, "failed") | {"error": words}
            await _write_unchanged(world, queued, tx, Merge(QUEUE, queued.id, failed))
        return "failed"
    return "published"


async def _write_unchanged(
    world: BackendWorld, queued: StoredDocument, tx: Transaction, *writes: Write
) -> None:
    """Do these writes, or none, if a post is still what was read; else raise."""

    async def work(documents: DocumentTransaction) -> None:
        if await documents.get(QUEUE, queued.id) != queued.fields:
            raise Changed
        documents.write(*writes)

    await world.documents.transact(tx, work)


def _is_due(fields: Fields, now: datetime) -> bool:
    wanted = fields.get("publishAt")
    return wanted in (None, "") or read_due(wanted, now) <= now


def _told(now: datetime, status: str, done: Published | None = None) -> dict[str, Any]:
    told: dict[str, Any] = {"status": status, "metadata": {"updated": timestamp_record(now)}}
    return told | ({"path": done.path, "commit": done.commit, "error": None} if done else {})


BLOG_AUTO_PUBLISHER = Workflow(
    name="daily/blog-auto-publisher",
    summary="Publishes posts whose day has come.",
    run=publish_due,
    acts_as=("create_post",),
)

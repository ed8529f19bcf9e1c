"""Every account of the directory gets a whole record: defaults under what is there.

How far it has come is in `meta/stats`, in the commit of each batch; so it goes on from there,
whoever goes on.
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from toolgate.packs.backend.directory.port import Account
from toolgate.ports.documents import DocumentTransaction, Merge, StoreUnavailable, Write
from toolgate.ports.users import USERS, Record, first_record, timestamp_record
from toolgate.workflows.declarations import Run, RunFailed, Workflow

if TYPE_CHECKING:
    from toolgate.packs.backend.world import BackendWorld

NAME = "sync-users"
STATS = ("meta", "stats")
STATE = "syncUsers"


async def sync_users(run: "Run[BackendWorld]") -> dict[str, Any]:
    """Go through the directory, from where an earlier run was stopped."""
    world = run.world
    state: Record = run.state or _left(await world.documents.get(*STATS))
    while not state["complete"]:
        try:
            page = await world.directory.page(state["lastPageToken"])
        except StoreUnavailable as problem:  # whoever asked is told, and calls again
            raise RunFailed(str(problem)) from problem
        people = [one for one in page.accounts if not one.anonymous]
        token = page.next_token
        processed = state["processed"] + len(people)
        state = {"lastPageToken": token, "processed": processed, "complete": token is None}
        async with run.transaction() as tx:
            await world.documents.transact(tx, partial(_complete, people, state))
            message = f"{processed} users synchronised"
            await run.checkpoint_in(tx, state, done=processed, message=message)
    return {"processed": state["processed"]}


SYNC_USERS: "Workflow[BackendWorld]" = Workflow(
    name=NAME,
    summary="Give every account of the directory a whole record.",
    run=sync_users,
    acts_as=("sync_users",),
)


def _left(stats: Record | None) -> Record:
    """Where an earlier run was stopped; the beginning where none was."""
    stored: Any = (stats or {}).get(STATE)
    begun: Record = cast("Record", stored) if isinstance(stored, dict) else {}
    token, processed = begun.get("lastPageToken"), begun.get("processed")
    if not isinstance(token, str) or not isinstance(processed, int):
        token, processed = None, 0
    return {"lastPageToken": token, "processed": processed, "complete": False}


async def _complete(
    people: Sequence[Account], state: Record, documents: DocumentTransaction
) -> None:
    """Write what the records of these people lack, and how far that is."""
    found = await documents.get_many([(USERS, one.uid) for one in people])
    writes: list[Write] = []
    for account, record in zip(people, found, strict=True):
        whole = first_record(account.uid, account.email, account.name, account.created)
        if missing := _missing(whole, record or {}):
            writes.append(Merge(USERS, account.uid, missing))
    noted = {name: state[name] for name in ("lastPageToken", "processed")}
    documents.write(*writes, Merge(*STATS, {STATE: noted | {"updated": timestamp_record()}}))


def _missing(whole: Record, stored: Record) -> Record:
    """The fields that are not stored; what is stored stays, whatever it is."""
    missing = {name: value for name, value in whole.items() if name not in stored}
    for name, value in stored.items():
        below: Any = whole.get(name)
        if isinstance(below, dict) and isinstance(value, dict):
            lacking = _missing(cast("Record", below), cast("Record", value))
            missing |= {name: lacking} if lacking else {}
    return missing

"""Finds out what became of commits whose calls ended before they were recorded."""

import logging
from datetime import timedelta
from typing import Any

from toolgate.packs.backend.world import BackendWorld
from toolgate.workflows.declarations import Run, Workflow

AGE = timedelta(minutes=15)
"""Longer than a call may take: what is older is under way nowhere."""
MOST = 100
log = logging.getLogger(__name__)


def _oldest(world: BackendWorld) -> str:
    before = world.posts.now() - AGE
    return before.isoformat(timespec="microseconds").replace("+00:00", "Z")


async def has_work(world: BackendWorld) -> bool:
    """Whether a call was interrupted."""
    return bool(await world.posts.intents.before(_oldest(world), 1))


async def reconcile(run: Run[BackendWorld]) -> dict[str, Any]:
    """Look each of them up in the history of the branch."""
    posts = run.world.posts
    left = await posts.intents.before(_oldest(run.world), MOST)
    if not left:
        return {"committed": {}, "not_committed": []}
    committed = await posts.committed(left)
    missing = [one.call for one in left if one.call not in committed]
    for one in left:
        what = committed.get(one.call)
        state = f"is commit {what}" if what else "was not committed"
        log.warning("Post %s of call %s, which was interrupted, %s.", one.slug, one.call, state)
    async with run.transaction() as tx:
        await posts.intents.finish(tx, [one.call for one in left])
    return {"committed": committed, "not_committed": missing}


RECONCILE_POSTS = Workflow(
    name="reconcile-posts",
    summary="Finds out whether posts of interrupted calls were committed.",
    run=reconcile,
    schedule="*/15 * * * *",
    when=has_work,
)

"""Scheduled work of the pack: `daily` and `frequent`, each with parts of its own.

A workflow of the pack that is named `daily/…` or `frequent/…` is such a part: nothing else makes it
one. Below are the ids of Backend Manager; one that no workflow has is known, and does nothing yet.
"""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, NamedTuple

from toolgate.packs.backend.world import BackendWorld
from toolgate.workflows.declarations import Run, RunFailed, RunStatus, Workflow

SCHEDULES: Mapping[str, str | None] = {"daily": "0 3 * * *", "frequent": None}
"""In UTC. The parts of `frequent` have schedules of their own, and look before they run."""
IDS = (
    "daily/reset-usage",
    "daily/marketing-prune",
    "daily/data-requests",
    "daily/expire-paypal-cancellations",
    "daily/blog-auto-publisher",
    "frequent/marketing-campaigns",
    "frequent/abandoned-carts",
    "frequent/email-queue",
)


class CronIds(NamedTuple):
    """What can be asked for."""

    with_work: tuple[str, ...]
    without_work: tuple[str, ...]

    def find(self, id: str) -> str | None:
        """The long id for a long or short one, by its spelling alone; None for any other text."""
        known = (*self.with_work, *self.without_work)
        if id in known:
            return id
        return next((one for one in known if id and one.partition("/")[2] == id), None)


def cron_ids(workflows: Collection[str]) -> CronIds:
    """The ids, given the names of the pack's workflows."""
    parts = [one for one in workflows if one.partition("/")[0] in SCHEDULES and "/" in one]
    return CronIds((*SCHEDULES, *sorted(parts)), tuple(one for one in IDS if one not in parts))


async def run_parts(group: str, run: Run[BackendWorld]) -> dict[str, Any]:
    """Start every part of a group as a run of its own, and wait for all of them."""
    workflows = run.world.workflows
    ids = cron_ids(workflows.names)
    names = [one for one in ids.with_work if one.startswith(f"{group}/")]
    started = [
        (name, await workflows.start_now(name, key=f"{run.id} {name}", call=run.id))
        for name in names
    ]
    told: dict[str, str] = {}
    failures: list[str] = []
    for number, (name, id) in enumerate(started, 1):
        record = await workflows.wait(id)
        told[name] = record.status.value
        if record.status is not RunStatus.SUCCEEDED:
            failures.append(f"{name} {record.status.value} (run {id})")
        await run.checkpoint({"ended": number}, done=number, total=len(started), message=name)
    if failures:
        raise RunFailed(f"Parts of {group} did not succeed: {', '.join(failures)}.")
    absent = [one for one in ids.without_work if one.startswith(f"{group}/")]
    return {"parts": told, "without_work": absent}


WORKFLOWS = tuple(
    Workflow(
        name=group,
        summary=f"Runs every part of `{group}`.",
        run=partial(run_parts, group),
        schedule=schedule,
    )
    for group, schedule in SCHEDULES.items()
)

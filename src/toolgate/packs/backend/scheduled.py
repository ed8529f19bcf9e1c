"""Scheduled work of the pack: `daily` and `frequent`, each with parts of its own.

A workflow of the pack that is named `daily/…` or `frequent/…` is such a part: nothing else makes it
one.
"""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from toolgate.packs.backend.world import BackendWorld
from toolgate.workflows.declarations import Run, RunFailed, RunStatus, Workflow

SCHEDULES: Mapping[str, str | None] = {"daily": "0 3 * * *", "frequent": None}
"""In UTC. The parts of `frequent` have schedules of their own, and look before they run."""


def cron_ids(workflows: Collection[str]) -> tuple[str, ...]:
    """What can be asked for, given the names of the pack's workflows."""
    parts = [one for one in workflows if one.partition("/")[0] in SCHEDULES and "/" in one]
    return (*SCHEDULES, *sorted(parts))


def find_cron(ids: Collection[str], id: str) -> str | None:
    """The long id for a long or short one, by its spelling alone; None for any other text."""
    if id in ids:
        return id
    return next((one for one in ids if id and one.partition("/")[2] == id), None)


async def run_parts(group: str, run: Run[BackendWorld]) -> dict[str, Any]:
    """Start every part of a group as a run of its own, and wait for all of them."""
    workflows = run.world.workflows
    names = [one for one in cron_ids(workflows.names) if one.startswith(f"{group}/")]
    started = [
        (name, await workflows.start_now(name, key=f"{run.id} {name}", call=run.id))
        for name in names
    ]
    told: dict[str, str] = {}
    results: dict[str, Any] = {}
    failures: list[str] = []
    for number, (name, id) in enumerate(started, 1):
        record = await workflows.wait(id)
        told[name] = record.status.value
        results[name] = record.result
        if record.ended and record.status is not RunStatus.SUCCEEDED:  # else it is switched off
            failures.append(f"{name} {record.status.value} (run {id})")
        await run.checkpoint({"ended": number}, done=number, total=len(started), message=name)
    if failures:
        raise RunFailed(f"Parts of {group} did not succeed: {', '.join(failures)}.")
    return {"parts": told, "results": results}


WORKFLOWS = tuple(
    Workflow(
        name=group,
        summary=f"Runs every part of `{group}`.",
        run=partial(run_parts, group),
        schedule=schedule,
    )
    for group, schedule in SCHEDULES.items()
)

"""`toolgate workflows`: what operators see of background work, and do to it."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.needed_packs import needs_pack

from toolgate import packs
from toolgate.db.engine import Database
from toolgate.workflows.runs import Runs

pytestmark = needs_pack("backend")

DECLARED = {
    f"{offer.pack.name}/{one.name}": one for offer in packs.offers() for one in offer.workflows
}


@pytest.fixture
def run(data: Path) -> str:
    """A run that waits."""
    return started(data)


def started(data: Path) -> str:
    async def start() -> str:
        database = Database(f"sqlite:///{data / 'toolgate.db'}")
        try:
            return await Runs(database, DECLARED).of("backend").start_now("daily")
        finally:
            await database.close()

    return anyio.run(start)


def commands_in_audit(cli: Any) -> list[str]:
    lines = cli("audit", "--json").out.splitlines()
    return [json.loads(line)["tool_name"] for line in lines]


def test_runs_are_listed_and_shown(cli: Any, run: str) -> None:
    shown = cli("workflows", "list")
    assert shown.code == 0
    assert run in shown.out
    assert "backend/daily  queued" in shown.out
    (listed,) = cli("workflows", "list", "--json").json
    assert (listed["id"], listed["status"]) == (run, "queued")
    assert cli("workflows", "show", run, "--json").json == listed
    assert "backend/daily" in cli("workflows", "show", run).out
    assert cli("workflows", "list", "--status", "failed", "--json").json == []
    assert cli("workflows", "list", "--workflow", "backend/frequent", "--json").json == []


def test_a_run_is_cancelled_and_retried_and_the_audit_says_who(cli: Any, run: str) -> None:
    assert cli("workflows", "cancel", run).out == "The run is cancelled.\n"
    followed = cli("workflows", "show", run, "--follow", "--json").json
    assert followed["status"] == "cancelled"
    assert cli("workflows", "retry", run, "--json").json == {"id": run, "status": "queued"}
    assert commands_in_audit(cli) == ["workflows.cancel", "workflows.retry"]


def test_what_cannot_be_done_is_one_sentence_and_leaves_no_row(cli: Any, run: str) -> None:
    refused = cli("workflows", "retry", run)
    assert (refused.code, refused.out) == (2, "")
    assert "The run is queued, so it cannot be retried." in refused.err
    for command in ("show", "cancel", "retry"):
        unknown = cli("workflows", command, "nothing")
        assert unknown.code == 2
        assert "There is no run nothing." in unknown.err
    assert "Use one of: queued, running" in cli("workflows", "list", "--status", "odd").err
    assert commands_in_audit(cli) == []


def test_what_has_ended_is_not_cancelled_and_one_that_is_alone_not_retried_beside_another(
    cli: Any, run: str, data: Path
) -> None:
    assert cli("workflows", "cancel", run).code == 0
    again = cli("workflows", "cancel", run)
    assert (again.code, again.out) == (2, "")
    assert "The run is cancelled, so it cannot be cancelled." in again.err
    started(data)
    beside = cli("workflows", "retry", run)
    assert beside.code == 2
    assert "Another run of this workflow is under way, beside which" in beside.err


def test_a_misspelled_workflow_is_told_with_those_there_are(cli: Any, run: str) -> None:
    told = cli("workflows", "list", "--workflow", "daily")
    assert "No pack in use has a workflow 'daily'. Workflows: backend/" in told.out


@pytest.mark.usefixtures("data")
def test_without_runs_it_says_so(cli: Any) -> None:
    assert cli("workflows", "list").out == "There are no such runs.\n"

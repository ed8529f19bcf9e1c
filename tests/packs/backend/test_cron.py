"""`run_cron`: a registry of ids, each run once, whoever asks."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.servers import Server

from toolgate.packs import backend
from toolgate.packs.backend import scheduled
from toolgate.packs.backend.tools import cron as cron_tool
from toolgate.testing import Kit, opened_kit
from toolgate.workflows.declarations import Run, RunFailed, Workflow

pytestmark = pytest.mark.anyio


class Part:
    """The work of `daily/reset-usage`, for as long as a test holds it."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.go_on = asyncio.Event()
        self.go_on.set()
        self.error: Exception | None = None

    async def run(self, run: Run[Any]) -> dict[str, Any]:
        self.runs.append(run.id)
        await run.checkpoint({"half": True}, done=1, total=2, message="half")
        await self.go_on.wait()
        if self.error:
            raise self.error
        return {"reset": 7}


@pytest.fixture
def part(monkeypatch: pytest.MonkeyPatch) -> Part:
    part = Part()
    workflow = Workflow(name="daily/reset-usage", summary="Resets.", run=part.run)
    others = [one for one in backend.OFFER.workflows if "/" not in one.name]
    monkeypatch.setattr(backend, "OFFER", replace(backend.OFFER, workflows=(*others, workflow)))
    return part


@pytest.fixture
async def kit(tmp_path: Path, database_url: str, part: Part) -> AsyncIterator[Kit]:
    settings: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["backend"]}
    async with opened_kit(tmp_path, **settings) as opened:
        yield opened


@pytest.mark.parametrize("id", ["reset-usage", "daily/reset-usage"])
async def test_short_and_long_ids_are_known(kit: Kit, part: Part, id: str) -> None:
    body = (await kit.call("run_cron", id=id)).body
    assert body == {
        "id": "daily/reset-usage",
        "run": part.runs[0],
        "status": "succeeded",
        "result": {"reset": 7},
    }


@pytest.mark.parametrize("arguments", [{}, {"id": ""}])
async def test_without_an_id_it_says_so(kit: Kit, arguments: dict[str, Any]) -> None:
    outcome = await kit.send("run_cron", arguments)
    assert outcome.status == 400
    assert outcome.body == {"error": "Missing parameter {id}"}


@pytest.mark.parametrize("id", ["../x", "daily/../..", "os", "/etc/passwd", "sync-users", "Daily"])
async def test_what_is_not_registered_is_refused_and_the_valid_ids_are_named(
    kit: Kit, part: Part, id: str
) -> None:
    outcome = await kit.call("run_cron", id=id)
    assert outcome.status == 400
    assert "daily, frequent, daily/reset-usage" in outcome.body["error"]
    assert not await kit.app.site_of("backend").workflows.list()


async def test_daily_runs_its_parts_and_tells_their_results(kit: Kit, part: Part) -> None:
    body = (await kit.call("run_cron", id="daily")).body
    assert body["status"] == "succeeded"
    assert body["result"]["parts"] == {"daily/reset-usage": "succeeded"}
    assert body["result"]["results"] == {"daily/reset-usage": {"reset": 7}}
    assert len(part.runs) == 1


async def test_a_part_that_fails_fails_the_whole_and_is_named(kit: Kit, part: Part) -> None:
    part.error = RunFailed("There are no users.")
    body = (await kit.call("run_cron", id="daily")).body
    assert body["status"] == "failed"
    assert "daily/reset-usage failed" in body["error"]


async def test_asked_for_at_once_it_is_one_run(
    kit: Kit, part: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cron_tool, "WAIT_SECONDS", 0.25)
    part.go_on.clear()
    calls = [kit.call("run_cron", id="reset-usage") for _ in range(5)]
    ids = {outcome.body["run"] for outcome in await asyncio.gather(*calls)}
    part.go_on.set()
    await kit.app.site_of("backend").workflows.wait(*ids)
    assert len(part.runs) == 1


async def test_what_takes_longer_than_a_call_goes_on(
    kit: Kit, part: Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cron_tool, "WAIT_SECONDS", 0.25)
    part.go_on.clear()
    body = (await kit.call("run_cron", id="reset-usage")).body
    assert body["status"] in {"queued", "running"}
    part.go_on.set()
    record = await kit.app.site_of("backend").workflows.wait(body["run"])
    assert record.result == {"reset": 7}


async def test_a_dry_run_starts_nothing(kit: Kit, part: Part) -> None:
    outcome = await kit.call("run_cron", id="daily", dry_run=True)
    assert outcome.status == 403
    assert not await kit.app.site_of("backend").workflows.list()


async def test_the_run_is_linked_to_the_call_that_started_it(kit: Kit, part: Part) -> None:
    body = (await kit.call("run_cron", id="reset-usage")).body
    record = await kit.app.site_of("backend").workflows.find(body["run"])
    rows = await kit.audit_rows()
    call = next(row for row in rows if row["tool_name"] == "run_cron")
    assert record.call == call["id"]
    mine = [row["tool_name"] for row in rows if row["request_id"] == body["run"]]
    assert mine == ["workflows.begin", "workflows.end"]


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


@pytest.mark.parametrize("id", IDS)
async def test_every_id_of_backend_manager_has_work(id: str) -> None:
    ids = scheduled.cron_ids([one.name for one in backend.OFFER.workflows])
    assert scheduled.find_cron(ids, id) == id
    assert scheduled.find_cron(ids, id.partition("/")[2]) == id


async def test_it_has_its_route_and_answers_alike_over_mcp(server: Server) -> None:
    with server.client() as client:
        told = client.post("/backend-manager/admin/cron", json={"id": "os"})
        assert told.status_code == 400
        assert "id must be one of: daily, frequent" in told.json()["error"]
        done = client.post("/backend-manager/admin/cron", json={"id": "frequent"}).json()
        assert done["id"] == "frequent"
        assert done["status"] in {"succeeded", "running", "queued"}
        same = client.post("/v1/tools/run_cron", json={"id": "os"})
        assert same.json() == told.json()

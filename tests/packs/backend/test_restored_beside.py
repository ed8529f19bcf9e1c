"""A restored database that is started beside its original sends nothing a second time by itself."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from sqlalchemy import select, update
from tests.backups.databases import content_of
from tests.smtp_server import smtp_server

from toolgate.app import offers_of, workflows_of
from toolgate.cli.main import run
from toolgate.db.workflow_tables import workflow_runs
from toolgate.testing import Kit, opened_kit
from toolgate.workflows.runs import Runs
from toolgate.workflows.schedules import Schedules

MAIL: dict[str, Any] = {"to": "a@x.example", "subject": "Once", "sender": "newsletter"}
SETTINGS: dict[str, Any] = {"packs__enabled": ["backend"]}


def later() -> datetime:
    return datetime.now(UTC) + timedelta(days=2)


async def original(data: Path, mail_url: str) -> None:
    """A server with a mail that is due in a day, and a run that works."""
    async with opened_kit(data, **SETTINGS, mail__url=mail_url) as kit:
        due = int((datetime.now(UTC) + timedelta(days=1)).timestamp())
        answer = await kit.call("send_email", **MAIL, sendAt=due)
        assert answer.status == 200, answer.text
        await kit.call("sync_users")
        running = {"status": "running", "ended_at": None, "due_at": "9999", "lease": "somebody"}
        await kit.app.gate.database.write(
            lambda c: c.execute(update(workflow_runs).values(running))
        )


async def start_due(kit: Kit) -> list[str]:
    """What starts by itself two days later."""
    declared = workflows_of(offers_of(kit.app.settings))
    runs = Runs(kit.app.gate.database, declared, later)
    worlds = {name: one.world for name, one in kit.app.worlds.items()}
    for _ in range(2):  # a first look finds out when each is due
        await Schedules(runs, worlds).start_due()
    names = select(workflow_runs.c.workflow).where(workflow_runs.c.ended_at.is_(None))
    return sorted(await kit.app.gate.database.read(lambda c: [*c.scalars(names)]))


async def what_starts(data: Path, mail_url: str) -> list[str]:
    async with opened_kit(data, **SETTINGS, mail__url=mail_url) as kit:
        assert await kit.app.worlds["backend"].world.mail.sending.has_work() is False
        return await start_due(kit)


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    capsys.readouterr()
    assert run([*words]) == code
    return capsys.readouterr()


def test_nothing_starts_in_a_restored_database_before_an_operator_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, copy = str(tmp_path / "made.gz"), str(tmp_path / "b")
    with smtp_server() as inbox:
        anyio.run(original, tmp_path / "a", inbox.url)
        said(capsys, "backup", file, "--data", str(tmp_path / "a"))
        told = said(capsys, "restore", file, "--data", copy)
        assert "toolgate workflows resume" in told.err
        assert anyio.run(what_starts, tmp_path / "b", inbox.url) == []
        listed = said(capsys, "workflows", "list", "--data", copy)
        assert "toolgate workflows resume" in listed.err
        assert "may have ended since" in " ".join(listed.out.split())
        checks = json.loads(said(capsys, "doctor", "--data", copy, "--json").out)
        assert {"background work": "warn"}.items() <= {
            one["check"]: one["state"] for one in checks
        }.items()
        assert json.loads(said(capsys, "workflows", "resume", "--data", copy, "--json").out) == {
            "resumed": True
        }
        started = anyio.run(what_starts, tmp_path / "b", inbox.url)
        assert "backend/daily" in started
        assert "Nothing rests" in said(capsys, "workflows", "resume", "--data", copy).out
        assert inbox.everyone == []
    tools = [row["tool_name"] for row in content_of(f"sqlite:///{copy}/toolgate.db")["audit"]]
    assert tools.count("workflows.resume") == 1

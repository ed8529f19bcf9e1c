"""A campaign to many, whose server is killed with -9 again and again."""

import json
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import psutil
from sqlalchemy import create_engine, make_url, select
from tests.servers import ROOT, pause, stop, wait_until_ready
from tests.smtp_counter import CountingServer

from toolgate.db.workflow_tables import workflow_runs
from toolgate.pack import Set
from toolgate.testing import opened_kit

PAGE = 1000
CONNECTIONS = 8
STALLED_SECONDS = 240.0


def address(number: int) -> str:
    """The address of one recipient."""
    return f"user{number}@example.com"


async def store_users(data: Path, database: str, count: int) -> None:
    """Store so many users."""
    settings = {"packs__enabled": ["backend"], "database__url": database}
    async with opened_kit(data, **settings) as kit:
        documents = kit.app.documents.of("backend")
        for first in range(0, count, PAGE):
            async with kit.app.gate.database.transaction() as tx:
                some = range(first, min(first + PAGE, count))
                # What campaigns look at: to load whole records takes longer than to send.
                await documents.write(
                    tx,
                    *(
                        Set("users", f"u{one:07}", {"auth": {"email": address(one)}})
                        for one in some
                    ),
                )


@dataclass
class Campaign:
    """A campaign under way, on a server that comes and goes."""

    data: Path
    database: str
    mail: CountingServer
    key: str = field(default_factory=lambda: secrets.token_hex(16))
    url: str = ""
    rest: float = 0.0
    """Megabytes of the server before it sends."""
    peak: float = 0.0
    """Most megabytes of a server while it sends."""
    told: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """What was told of the run before each kill: how many of how many."""

    @contextmanager
    def server(self) -> Generator[subprocess.Popen[str]]:
        """A server, until it is killed or the block ends."""
        flags: dict[str, Any] = {
            "data": str(self.data),
            "database.url": self.database,
            "admin_key": self.key,
            "packs.enabled": ["backend"],
            "mail.url": self.mail.url,
            "mail.connections": CONNECTIONS,
            "brand.contact": "hello@example.com",
            "limits.calls_per_minute": 0,
        }
        command = [sys.executable, "-m", "tests.server_process", json.dumps(flags)]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            self.url = json.loads(process.stdout.readline())["url"]
            wait_until_ready(self.url, process)
            self.rest = self.rest or _megabytes(process.pid)
            try:
                yield process
            finally:
                stop(process)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """One call over HTTP."""
        headers = {"Authorization": f"Bearer {self.key}"}
        answer = httpx2.post(
            f"{self.url}/v1/tools/{tool}", json=arguments, headers=headers, timeout=60,
            trust_env=False,
        )  # fmt: skip
        assert answer.status_code == 200, answer.text
        return answer.json()

    def status(self, id: str) -> dict[str, Any]:
        """The campaign as it is now."""
        return self.call("list_campaigns", id=id)["campaign"]

    def look_at_progress(self, run: str) -> None:
        """What `toolgate workflows show` reads, at once: the run goes on meanwhile."""
        url = make_url(self.database)
        if url.get_backend_name() == "postgresql":
            url = url.set(drivername="postgresql+psycopg")
        engine = create_engine(url)
        with engine.connect() as connection:
            wanted = select(workflow_runs.c.done, workflow_runs.c.total).where(
                workflow_runs.c.id == run
            )
            done, total = connection.execute(wanted).one()
        engine.dispose()
        self.told.append((done, total))

    def send_until(self, process: subprocess.Popen[str], reached: Callable[[], bool]) -> None:
        """Wait until something is reached while mails go on being taken."""
        last, since = self.mail.count(), time.monotonic()
        while not reached():
            pause()
            self.peak = max(self.peak, _megabytes(process.pid))
            if (now := self.mail.count()) != last:
                last, since = now, time.monotonic()
            assert time.monotonic() - since < STALLED_SECONDS, f"nothing since mail {last}"


def _megabytes(pid: int) -> float:
    return psutil.Process(pid).memory_info().rss / 1e6


def send_with_kills(campaign: Campaign, kills: int, count: int, *, revoke: int) -> dict[str, Any]:
    """Send to `count` users with so many kills between; one revokes consent after the first."""
    id = ""
    for number in range(kills):
        with campaign.server() as process:
            if not id:
                made = campaign.call("create_campaign", name="News", subject="News", all=True)
                assert made["status"] == "processing"
                id = made["id"]
            goal = count * (number + 1) // (kills + 1)
            run = campaign.status(id)["run"]
            campaign.send_until(process, lambda goal=goal: campaign.mail.count() >= goal)
            campaign.look_at_progress(run)
            if number == 0:
                path, consent = f"users/u{revoke:07}", {"marketing": {"status": "revoked"}}
                campaign.call("firestore_write", path=path, document={"consent": consent})
            process.kill()
            process.wait()
    with campaign.server() as process:
        done = ("sent", "failed")
        campaign.send_until(process, lambda: campaign.status(id)["status"] in done)
        return campaign.status(id)

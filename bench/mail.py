"""A campaign by mail beside bare `aiosmtplib`, to the same server over as many connections.

python -m bench mail

Both send the same bytes to as many people, in turn. Ours finds the people, asks for their consent,
makes each mail with that person's own link, and keeps what became of each, so that nobody gets two
whatever is killed; from the call to the campaign's `sent`. The bare one has connected before, and
has bytes made once. The mail server has the first core, who sends has the second.
"""

import http.client
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import orjson

from bench import cpu
from bench.messages import ask
from bench.postgres import postgres
from bench.servers import CLIENT_CORES, ROOT, Server, free_port, module, process, wait_until
from toolgate.pack import Set
from toolgate.testing import opened_kit

PEOPLE, ROUNDS, CONNECTIONS = 5_000, 3, 8
LEAST = 0.5
SECONDS = 600
POLL = 0.02


@dataclass(frozen=True, slots=True)
class Took:
    """How long so many mails took."""

    seconds: float
    cpu: float

    @property
    def per_second(self) -> float:
        return PEOPLE / self.seconds

    @property
    def microseconds(self) -> float:
        """Of CPU, for one mail."""
        return self.cpu / PEOPLE * 1e6


async def _store_people(data: Path, database: str) -> None:
    settings: dict[str, Any] = {"packs__enabled": ["backend"], "database__url": database}
    async with opened_kit(data, **settings) as kit:
        documents = kit.app.documents.of("backend")
        for first in range(0, PEOPLE, 1000):
            async with kit.app.gate.database.transaction() as tx:
                some = (f"u{one:07}" for one in range(first, first + 1000))
                await documents.write(
                    tx, *(Set("users", id, {"auth": {"email": f"{id}@example.com"}}) for id in some)
                )


@contextmanager
def _toolgate(data: Path, database: str, mail: Server) -> Generator[Server]:
    port, key = free_port(), secrets.token_hex(16)
    environment = {
        "TOOLGATE_DATA": str(data),
        "TOOLGATE_DATABASE__URL": database,
        "TOOLGATE_ADMIN_KEY": key,
        "TOOLGATE_PACKS__ENABLED": "backend",
        "TOOLGATE_MAIL__URL": f"smtp://127.0.0.1:{mail.port}",
        "TOOLGATE_MAIL__STARTTLS": "never",
        "TOOLGATE_MAIL__CONNECTIONS": str(CONNECTIONS),
        "TOOLGATE_BRAND__CONTACT": "hello@example.com",
    }
    command = [sys.executable, "-m", "toolgate", "serve", "--port", str(port)]

    def ready() -> bool:
        return ask(port, b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").good

    with process(command, environment=environment, cwd=data) as started:
        os.sched_setaffinity(started.pid, CLIENT_CORES)
        wait_until(ready, started)
        yield Server(port, [started.pid], key)


def _call(server: Server, tool: str, **arguments: Any) -> dict[str, Any]:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS)) as line:
        headers = {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json"}
        line.request("POST", f"/v1/tools/{tool}", orjson.dumps(arguments), headers)
        answer = line.getresponse()
        read = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{tool} was answered with {answer.status}: {read[:300]!r}")
        return orjson.loads(read)


def _campaign(server: Server, taken: Path) -> Took:
    """From the call until the campaign says that it is sent."""
    goal = taken.stat().st_size + PEOPLE
    before, began = cpu.spent(server.pids), time.perf_counter()
    until = began + SECONDS
    id = _call(server, "create_campaign", name="News", subject="News", all=True)["id"]
    while taken.stat().st_size < goal:
        if time.perf_counter() > until:
            raise RuntimeError(f"Only {goal - taken.stat().st_size} of {PEOPLE} mails came.")
        time.sleep(POLL)
    while (campaign := _call(server, "list_campaigns", id=id)["campaign"])["status"] != "sent":
        time.sleep(POLL)
    took = Took(time.perf_counter() - began, cpu.between(before, cpu.spent(server.pids)) / 1e9)
    assert campaign["delivery"] == {"accepted": PEOPLE}, campaign
    return took


def _bare(mail: Server, content: Path) -> Took:
    command = [sys.executable, "-m", "bench.apps.bare_mail"]
    given = [str(one) for one in (mail.port, CONNECTIONS, PEOPLE, content)]
    done = subprocess.run(
        [*command, *given],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: os.sched_setaffinity(0, CLIENT_CORES),
        check=True,
    )
    return Took(**orjson.loads(done.stdout))


def _compare(name: str, data: Path, database: str) -> bool:
    """Interleaved rounds, of which the first only warms up; medians."""
    anyio.run(_store_people, data, database)
    with (
        module("mail_server", str(data)) as mail,
        _toolgate(data, database, mail) as ours,
    ):
        taken = data / "taken"
        pairs = [(_campaign(ours, taken), _bare(mail, data / "mail")) for _ in range(ROUNDS + 1)][
            1:
        ]
    size = (data / "mail").stat().st_size
    print(f"{name}: {PEOPLE} mails of {size} bytes over {CONNECTIONS} connections, {ROUNDS} rounds")
    return all(
        [
            _tell("mails/s", [(own.per_second, bare.per_second) for own, bare in pairs]),
            _tell(
                "mails per s of CPU",
                [(1 / own.cpu * PEOPLE, 1 / bare.cpu * PEOPLE) for own, bare in pairs],
            ),
        ]
    )


def _tell(what: str, pairs: list[tuple[float, float]]) -> bool:
    own, bare = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(ours / other for ours, other in pairs)
    told = "" if ratio >= LEAST else "  UNDER"
    print(f"  {what:20} campaign {own:6.0f}   bare {bare:6.0f}   {ratio:5.2f}  (≥ {LEAST:g}){told}")
    return ratio >= LEAST


def main(without: list[str]) -> None:
    """Print a table; fail where a bound does not hold."""
    with tempfile.TemporaryDirectory() as folder:
        lite = Path(folder) / "lite"
        lite.mkdir(mode=0o700)
        held = [_compare("SQLite", lite, f"sqlite:///{lite}/toolgate.db")]
        if "postgresql" not in without:
            with postgres() as server:
                data = Path(folder) / "postgres"
                data.mkdir(mode=0o700)
                held.append(_compare("PostgreSQL", data, server.new_database("mail")))
    if not all(held):
        raise SystemExit(1)

"""Two real servers, or one with two workers, on one database: each run is done once."""

import http.client
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, select, update
from tests.faults.server import served, until
from tests.patience import PATIENT

from toolgate.db.workflow_tables import workflow_runs, workflow_schedules

pytestmark = pytest.mark.timeout(600)

DAILY, HOOK = "backend/daily", "backend/call-webhook"


@dataclass
class Receiver:
    """Counts what it is asked, by id."""

    port: int = 0
    ids: list[str] = field(default_factory=list[str])
    took: Callable[[], None] = lambda: None


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            receiver.ids.append(body["id"])
            receiver.took()
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.port = server.server_port
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield receiver
        server.shutdown()


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    opened = create_engine(database_url)
    yield opened
    opened.dispose()


def given(tmp_path: Path, database_url: str, receiver: Receiver) -> dict[str, str]:
    file = tmp_path / "hooks.toml"
    url = f"http://127.0.0.1:{receiver.port}/"
    file.write_text(f'told = {{url = "{url}", secret = "sixteen characters"}}\n')
    return {
        "packs__enabled": "backend",
        "database__url": database_url,
        "backend__hooks": str(file),
        "outbound__allow": f"127.0.0.1:{receiver.port}",
    }


def runs(engine: Engine, workflow: str | None = None) -> list[Any]:
    wanted = select(workflow_runs)
    if workflow:
        wanted = wanted.where(workflow_runs.c.workflow == workflow)
    with engine.connect() as connection:
        return list(connection.execute(wanted))


def make_daily_due(engine: Engine) -> None:
    """As if three o'clock had gone by while no server ran."""
    past = update(workflow_schedules).where(workflow_schedules.c.workflow == DAILY)
    with engine.begin() as connection:
        done = connection.execute(past.values(next_at="2026-01-01T03:00:00.000000Z"))
        assert done.rowcount == 1


def daily_is_over(engine: Engine) -> bool:
    return [one.status for one in runs(engine, DAILY)] == ["succeeded"]


def check_once(engine: Engine) -> None:
    """One `daily`, and each of its parts once."""
    (daily,) = runs(engine, DAILY)
    counted = Counter(one.workflow for one in runs(engine) if one.call == daily.id)
    assert set(counted.values()) == {1}
    assert set(counted) >= {"backend/daily/reset-usage", "backend/daily/marketing-prune"}
    assert daily.attempts == 1


def call_at_once(ask: list[Callable[[], Any]]) -> None:
    with ThreadPoolExecutor(len(ask)) as pool:
        answers = [one.result() for one in [pool.submit(one) for one in ask]]
    assert [one.status for one in answers] == [200] * len(ask), answers


def test_two_servers_fire_a_schedule_once_and_do_each_run_once(
    tmp_path: Path, database_url: str, engine: Engine, receiver: Receiver
) -> None:
    settings, data = given(tmp_path, database_url, receiver), tmp_path / "data"
    with served(data, **settings):
        until(lambda: bool(_schedules(engine)))
    make_daily_due(engine)
    with served(data, **settings) as first, served(data, **settings) as second:
        call_at_once(
            [lambda one=one: one.call("run_hook", path="told") for one in (first, second) * 4]
        )
        until(lambda: daily_is_over(engine), PATIENT)
    check_once(engine)
    assert len(receiver.ids) == len(set(receiver.ids)) == 8


def test_two_workers_of_a_server_do_the_same(
    tmp_path: Path, database_url: str, engine: Engine, receiver: Receiver
) -> None:
    settings, data = given(tmp_path, database_url, receiver), tmp_path / "data"
    with served(data, **settings):
        until(lambda: bool(_schedules(engine)))
    make_daily_due(engine)
    with served(data, **settings, server__workers="2") as running:
        call_at_once([lambda: running.call("run_hook", path="told")] * 8)
        until(lambda: daily_is_over(engine), PATIENT)
        running.stop()
    check_once(engine)
    assert len(receiver.ids) == len(set(receiver.ids)) == 8


def test_what_a_killed_server_did_is_gone_on_with_by_the_other(
    tmp_path: Path, database_url: str, engine: Engine, receiver: Receiver
) -> None:
    """The one that sent it, if it is the first: both look for work, and the first is woken."""
    settings, data = given(tmp_path, database_url, receiver), tmp_path / "data"
    settings["workflows__lease_seconds"] = "1"
    with served(data, **settings) as first, served(data, **settings):
        receiver.took = first.kill
        with pytest.raises((http.client.HTTPException, OSError)):
            first.call("run_hook", path="told")
        receiver.took = lambda: None
        until(lambda: [one.status for one in runs(engine, HOOK)] == ["succeeded"], PATIENT)
    (run,) = runs(engine, HOOK)
    assert len(set(receiver.ids)) == 1
    assert run.result["attempts"] == len(receiver.ids)


def _schedules(engine: Engine) -> list[Any]:
    with engine.connect() as connection:
        return list(connection.execute(select(workflow_schedules)))

"""`doctor` tries to write, and looks at the server on its port."""

import sqlite3
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from tests.faults.server import until
from tests.patience import PATIENT


def found(report: Any, name: str) -> tuple[str, str]:
    [one] = [one for one in report.json if one["check"] == name]
    return one["state"], one["says"]


def run_sql(file: Path, statement: str) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(statement)


FULL = "database or disk is full"
REFUSING = f"""
CREATE TRIGGER refusing BEFORE INSERT ON write_checks BEGIN SELECT RAISE(FAIL, '{FULL}'); END
"""


def test_a_database_that_can_only_be_read_fails(cli: Any, data: Path) -> None:
    file = data / "toolgate.db"
    assert found(cli("doctor", "--json"), "database write")[0] == "ok"
    run_sql(file, REFUSING)
    report = cli("doctor", "--json")
    state, says = found(report, "database write")
    assert (report.code, state) == (1, "fail")
    assert says.endswith(f"{FULL}. Free some space and try again.")


def test_a_database_that_another_program_holds_fails(
    cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolgate.db.engine.ANSWER_SECONDS", (0.1, 0.1))
    with closing(sqlite3.connect(data / "toolgate.db")) as other:
        other.execute("BEGIN IMMEDIATE")
        state, says = found(cli("doctor", "--json"), "database write")
    assert state == "fail"
    assert "try again when that program has ended" in says


def test_nothing_stays_of_the_test_row(cli: Any, data: Path) -> None:
    cli("doctor")
    with closing(sqlite3.connect(data / "toolgate.db")) as connection:
        assert connection.execute("SELECT count(*) FROM write_checks").fetchone() == (0,)


def status_of(url: str) -> int:
    try:
        with urlopen(f"{url}/readyz", timeout=PATIENT) as answer:
            return answer.status
    except HTTPError as refusal:
        with refusal:
            return refusal.code


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_gone_or_replaced_while_the_server_runs_fails(
    served: Any, cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced: bool
) -> None:
    file, aside = tmp_path / ".toolgate/toolgate.db", tmp_path / "aside.db"
    with served() as running:
        monkeypatch.setenv("TOOLGATE_SERVER__PORT", running.url.rpartition(":")[2])
        assert found(cli("doctor", "--json"), "port")[0] == "ok"
        file.rename(aside)
        if replaced:
            cli("db", "upgrade")
        until(lambda: status_of(running.url) == 503, PATIENT)
        report = cli("doctor", "--json")
    assert report.code == 1
    state, says = found(report, "port")
    assert state == "fail"
    assert f"A toolgate answers at {running.url}, but is not ready: " in says
    assert "If the database's file was deleted or replaced, restart the server." in says
    state, says = found(report, "database")
    assert state == ("ok" if replaced else "fail"), says
    assert replaced or f"is gone, and the toolgate at {running.url} has lost its database" in says


def test_in_the_wrong_folder_a_server_elsewhere_is_a_warning(
    served: Any, cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served() as running:
        monkeypatch.setenv("TOOLGATE_SERVER__PORT", running.url.rpartition(":")[2])
        wrong = tmp_path / "elsewhere"
        wrong.mkdir()
        monkeypatch.chdir(wrong)
        report = cli("doctor", "--json")
    state, says = found(report, "database")
    assert (report.code, state) == (0, "warn")
    assert f"a toolgate answers at {running.url}: its data is elsewhere." in says
    assert "--data" in says
    assert "first start" not in report.out
    assert "the next `toolgate serve`" not in report.out


class OtherProgram(BaseHTTPRequestHandler):
    """A program that knows no `/readyz`, and stamps its answers as many do."""

    def do_GET(self) -> None:
        self.send_response(404)
        self.send_header("X-Request-Id", "1")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the test says what is wrong."""


def test_another_program_on_the_port_is_not_taken_for_a_toolgate(
    cli: Any, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HTTPServer(("127.0.0.1", 0), OtherProgram) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("TOOLGATE_SERVER__PORT", str(server.server_port))
        state, says = found(cli("doctor", "--json"), "port")
        server.shutdown()
        thread.join()
    assert (state, "taken by another program" in says) == ("warn", True)

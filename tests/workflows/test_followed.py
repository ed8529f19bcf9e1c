"""`toolgate workflows show --follow`: a run in another process, as it comes along."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from tests.faults.server import until
from tests.patience import PATIENT
from tests.workflows import counting_process
from tests.workflows.counting_process import STEPS

pytestmark = pytest.mark.timeout(300)


def runs(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as connection:
        try:
            found = connection.execute("SELECT id FROM workflow_runs")
            return [one for (one,) in found]
        except sqlite3.OperationalError:  # there is no such table yet
            return []


def test_a_run_of_another_process_is_followed_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / "toolgate.db"
    url, lines = f"sqlite:///{file}", tmp_path / "lines"
    command = [sys.executable, counting_process.__file__, url, str(tmp_path), str(lines)]
    with subprocess.Popen(command) as process:
        found: list[str] = []
        until(lambda: file.exists() and bool(found.extend(runs(file)) or found), PATIENT)
        (id,) = found
        show = [sys.executable, "-m", "toolgate", "workflows", "show", id, "--follow"]
        done = subprocess.run(
            [*show, "--data", str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=PATIENT,
            check=True,
        )
        assert process.wait(PATIENT) == 0
    told = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert f"{STEPS} of {STEPS}" in told
    assert {"status succeeded", f"done {STEPS}", f'result {{"counted": {STEPS}}}'} <= {*told}
    assert "Traceback" not in done.stderr

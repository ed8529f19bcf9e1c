"""SIGTERM at any moment of a start ends it: exit code 0, nothing said, no process left."""

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest
from tests import preloaded
from tests.faults.server import served
from tests.patience import PATIENT
from tests.servers import ROOT

KEY = secrets.token_hex(16)
BEFORE_THE_GREETING = [
    "toolgate.http_server:listen",
    "toolgate.transports.connection.httptools:LimitedHttpTools.on_headers_complete",
    "toolgate.app:opened",
    "toolgate.app:_close",
    "toolgate.cli.serve:_greet",
]
AFTER_IT = [
    "toolgate.http_server:run",
    "uvicorn.config:Config.__init__",
]
ALONE = [
    "uvicorn.server:Server.run",
    "toolgate.shutdown:StoppableServer.capture_signals",
    "uvicorn.server:Server.startup",
    "toolgate.http_server:Application._start",
    "uvicorn.server:Server.main_loop",
]
WITH_WORKERS = [
    "toolgate.settings:pass_to_workers",
    "uvicorn.supervisors.multiprocess:Multiprocess.init_processes",
    "multiprocessing.popen_spawn_posix:Popen._launch",
    "uvicorn.supervisors.multiprocess:Process.ping",
]
PLACES = [
    *((1, place) for place in (*BEFORE_THE_GREETING, *AFTER_IT, *ALONE)),
    *((2, place) for place in (*AFTER_IT, *WITH_WORKERS)),
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Data of an earlier start."""
    data = tmp_path_factory.mktemp("starting") / "data"
    with served(data):
        pass
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TOOLGATE_")}
    return clean | {
        "TOOLGATE_ADMIN_KEY": KEY,
        "TOOLGATE_DATA": str(data),
    }


def processes_of(session: int) -> Iterator[psutil.Process]:
    """What runs in a session: a server that was started in its own, and all it started."""
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session and process.status() != psutil.STATUS_ZOMBIE:
                yield process
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue


@pytest.mark.parametrize(("workers", "place"), PLACES)
def test_a_signal_during_the_start_ends_it(
    environment: dict[str, str], workers: int, place: str
) -> None:
    command = [sys.executable, "-m", "tests.faults.signalled_start", place]
    process = preloaded.Popen(
        [*command, "--workers", str(workers)],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, said = process.communicate(timeout=PATIENT)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, said) == (0, f"SIGTERM at {place}\n")
    _, alive = psutil.wait_procs(list(processes_of(process.pid)), PATIENT)
    assert alive == []


@pytest.mark.parametrize("workers", [1, 2])
def test_a_signal_right_after_the_greeting_ends_it(
    environment: dict[str, str], workers: int
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "toolgate", "serve", "--port", "0", "--workers", str(workers)],
        env=environment | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        assert any("claude mcp add" in line for line in process.stdout)
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=PATIENT)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, said) == (0, "")
    _, alive = psutil.wait_procs(list(processes_of(process.pid)), PATIENT)
    assert alive == []

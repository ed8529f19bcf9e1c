"""A real server whose files are few, and strangers who hold connections without a word."""

import json
import resource
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from tests.patience import PATIENT
from tests.servers import ROOT, stop, wait_until_ready

pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux has many loopback addresses to connect from"
)

FILES = 256
STRANGERS = 300
ADDRESSES = [f"127.0.0.{number}" for number in range(2, 12)]


@dataclass
class Small:
    url: str
    port: int
    key: str
    log: Path

    def client(self) -> httpx2.Client:
        headers = {"Authorization": f"Bearer {self.key}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=PATIENT, trust_env=False)


@contextmanager
def small_server(folder: Path) -> Iterator[Small]:
    """A server that may open few files."""
    key, log = secrets.token_hex(16), folder / "log"
    flags = {"data": str(folder / "data"), "admin_key": key, "limits.head_seconds": PATIENT}
    command = [sys.executable, "-m", "tests.server_process", json.dumps(flags)]
    limited = ["sh", "-c", f'ulimit -n {FILES} && exec "$@"', "sh", *command]
    with (
        log.open("wb") as errors,
        subprocess.Popen(limited, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            wait_until_ready(url, process)
            assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[0] == FILES
            yield Small(url, int(url.rpartition(":")[2]), key, log)
        finally:
            stop(process)


def test_idle_strangers_lock_nobody_out_and_leave_one_line(tmp_path: Path) -> None:
    with small_server(tmp_path) as server, server.client() as old, ExitStack() as held:
        assert old.get("/v1/tools").status_code == 200
        for number in range(STRANGERS):
            source = (ADDRESSES[number % len(ADDRESSES)], 0)
            address = ("127.0.0.1", server.port)
            held.enter_context(socket.create_connection(address, PATIENT, source))
        with server.client() as new:
            assert new.get("/healthz").status_code == 200
            assert new.get("/v1/tools").status_code == 200
        assert old.get("/v1/tools").status_code == 200
        lines = server.log.read_text().splitlines()
        assert [line for line in lines if "connections are taken" in line] == lines[-1:], lines

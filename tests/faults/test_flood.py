"""A real server whose files are few, and strangers who hold connections: silent, or unreading."""

import contextlib
import functools
import json
import resource
import secrets
import socket
import ssl
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
PLACES = 32
UNREADING = 40
PIPELINED = b"GET /v1/tools HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n" * 5000
ADDRESSES = [f"127.0.0.{number}" for number in range(2, 12)]


@dataclass
class Small:
    url: str
    port: int
    key: str
    log: Path
    pid: int
    trusted: ssl.SSLContext | bool

    def client(self) -> httpx2.Client:
        return httpx2.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self.key}"},
            timeout=PATIENT,
            trust_env=False,
            verify=self.trusted,
        )

    def connected(self, number: int) -> socket.socket:
        """A stranger's connection; each is from another address than the one before."""
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.settimeout(PATIENT)
        one.bind((ADDRESSES[number % len(ADDRESSES)], 0))
        one.connect(("127.0.0.1", self.port))
        return one


@contextmanager
def small_server(folder: Path, *, https: bool = False, **limits: float) -> Iterator[Small]:
    """A server that may open few files."""
    key, log = secrets.token_hex(16), folder / "log"
    flags = {"data": str(folder / "data"), "admin_key": key, "limits.head_seconds": PATIENT}
    flags |= {f"limits.{name}": value for name, value in limits.items()}
    flags |= {"server.https": https}
    command = [sys.executable, "-m", "tests.server_process", json.dumps(flags)]
    limited = ["sh", "-c", f'ulimit -n {FILES} && exec "$@"', "sh", *command]
    with (
        log.open("wb") as errors,
        subprocess.Popen(limited, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors) as process,
    ):
        try:
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            ca = folder / "data/tls/ca.pem"
            trusted = ssl.create_default_context(cafile=ca) if https else True
            wait_until_ready(url, process, trusted)
            assert resource.prlimit(process.pid, resource.RLIMIT_NOFILE)[0] == FILES
            yield Small(url, int(url.rpartition(":")[2]), key, log, process.pid, trusted)
        finally:
            stop(process)


def test_idle_strangers_lock_nobody_out_and_leave_one_line(tmp_path: Path) -> None:
    with small_server(tmp_path) as server, server.client() as old, ExitStack() as held:
        assert old.get("/v1/tools").status_code == 200
        for number in range(STRANGERS):
            held.enter_context(server.connected(number))
        with server.client() as new:
            assert new.get("/healthz").status_code == 200
            assert new.get("/v1/tools").status_code == 200
        assert old.get("/v1/tools").status_code == 200
        lines = server.log.read_text().splitlines()
        assert [line for line in lines if "connections are taken" in line] == lines[-1:], lines


@functools.cache
def hello() -> bytes:
    """The first message of a client's TLS handshake."""
    sent = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


def test_handshakes_that_do_not_end_lock_nobody_out(tmp_path: Path) -> None:
    with small_server(tmp_path, https=True) as server, server.client() as old, ExitStack() as held:
        assert old.get("/v1/tools").status_code == 200
        for number in range(STRANGERS):
            one = held.enter_context(server.connected(0))
            if number % 2:
                one.sendall(hello())
        with server.client() as new:
            assert new.get("/healthz").status_code == 200
            assert new.get("/v1/tools").status_code == 200
        assert old.get("/v1/tools").status_code == 200
        log = server.log.read_text()
        assert "connections without credentials" in log
        assert "Traceback" not in log


def test_handshakes_that_take_too_long_are_ended(tmp_path: Path) -> None:
    with small_server(tmp_path, https=True, head_seconds=1) as server, ExitStack() as held:
        strangers = [held.enter_context(server.connected(0)) for _ in range(20)]
        for one in strangers:
            with contextlib.suppress(ConnectionResetError):
                assert one.recv(1) == b""


def send_what_is_taken(one: socket.socket) -> None:
    """Send requests as long as the server reads them; read nothing."""
    one.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        one.send(PIPELINED)


def test_strangers_who_never_read_keep_nobody_out(tmp_path: Path) -> None:
    with (
        small_server(tmp_path, connections=PLACES, body_seconds=PATIENT) as server,
        server.client() as old,
        ExitStack() as held,
    ):
        assert old.get("/v1/tools").status_code == 200
        for number in range(UNREADING):
            send_what_is_taken(held.enter_context(server.connected(number)))
        for _ in range(PLACES):
            with server.client() as new:
                assert new.get("/healthz").status_code == 200
                assert new.get("/v1/tools").status_code == 200
        assert old.get("/v1/tools").status_code == 200


def send_until_cut(one: socket.socket) -> None:
    while True:
        one.sendall(PIPELINED)


def test_a_stranger_who_never_reads_is_cut_and_costs_little(tmp_path: Path) -> None:
    with small_server(tmp_path, body_seconds=1) as server, server.connected(0) as stranger:
        before = peak_memory(server.pid)
        with pytest.raises(ConnectionError):
            send_until_cut(stranger)
        assert peak_memory(server.pid) - before < 200_000


def peak_memory(pid: int) -> int:
    """In kilobytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

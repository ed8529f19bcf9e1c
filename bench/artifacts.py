"""An artifact of 10 MiB, put and got, beside a bare handler that has the same bytes to move.

python -m bench artifacts

The bare handler gets the same request body, writes it to a file on the same disk and waits for that
(fsync), as toolgate waits for its blob; for a get it sends a file as long as toolgate's response.
Both are asked in turn, one request at a time. Before that, many are sent at once to toolgate alone,
and the most memory that it takes is compared with what it took at rest, after its start.
"""

import base64
import http.client
import os
import secrets
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import orjson

from bench.messages import ask
from bench.servers import Server, free_port, module, process, wait_until

SIZE = 10 * 1024 * 1024
ROUNDS, AT_ONCE = 15, 8
MAX_TIMES, MAX_MB = 3.0, 60.0
TASK = "00000000-0000-4000-8000-0000000000b1"
PUT, GET = "/v1/tools/artifact.put", "/v1/tools/artifact.get"
SECONDS = 120


@contextmanager
def _toolgate(data: Path) -> Iterator[Server]:
    port, key = free_port(), secrets.token_hex(16)
    environment = {
        "TOOLGATE_DATA": str(data),
        "TOOLGATE_ADMIN_KEY": key,
        "TOOLGATE_PACKS__ENABLED": "orchestrator",
        "TOOLGATE_LIMITS__CALLS_PER_MINUTE": "100000000",
    }
    command = [sys.executable, "-m", "toolgate", "serve", "--demo", "--port", str(port)]
    data.mkdir()

    def ready() -> bool:
        return ask(port, b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").good

    with process(command, environment=environment, cwd=data) as started:
        wait_until(ready, started)
        yield Server(port, [started.pid], key)


def _request(server: Server, method: str, path: str, body: bytes | None = None) -> bytes:
    with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=SECONDS)) as line:
        line.request(method, path, body, {"Authorization": f"Bearer {server.key}"})
        answer = line.getresponse()
        read = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path} was answered with {answer.status}: {read[:300]!r}")
        return read


def _put_body(path: str) -> bytes:
    content = base64.b64encode(os.urandom(SIZE)).decode()
    return orjson.dumps({"task_id": TASK, "path": path, "content_bytes_base64": content})


def _get_body(path: str) -> bytes:
    return orjson.dumps({"task_id": TASK, "path": path})


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _compare(name: str, ours: Callable[[], object], bare: Callable[[], object]) -> bool:
    pairs = [(_seconds(ours), _seconds(bare)) for _ in range(ROUNDS)]
    own, other = (statistics.median(column) * 1000 for column in zip(*pairs, strict=True))
    times = own / other
    told = "" if times <= MAX_TIMES else f"  over {MAX_TIMES:g}"
    print(f"{name}  toolgate {own:7.1f} ms   bare {other:7.1f} ms   {times:5.2f} x{told}")
    return times <= MAX_TIMES


def _status(pid: int, field: str) -> float:
    """In MB."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    (line,) = (one for one in text.splitlines() if one.startswith(f"{field}:"))
    return int(line.split()[1]) * 1024 / 1e6


def _at_once(name: str, pid: int, idle: float, work: Callable[[int], object]) -> bool:
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")  # VmHWM begins anew
    threads = [threading.Thread(target=work, args=[number]) for number in range(AT_ONCE)]
    took = _seconds(lambda: [one.start() for one in threads] + [one.join() for one in threads])
    more = _status(pid, "VmHWM") - idle
    told = "" if more <= MAX_MB else f"  over {MAX_MB:g}"
    print(f"{AT_ONCE} {name} at once  {took:6.2f} s   {more:6.1f} MB above {idle:.0f} MB{told}")
    return more <= MAX_MB


def _compare_memory(ours: Server) -> bool:
    (pid,) = ours.pids
    time.sleep(1.3)  # audit rows are stored and sealed
    idle = _status(pid, "VmRSS")
    bodies = [_put_body(f"many/{number}") for number in range(AT_ONCE)]
    gets = [_get_body(f"many/{number}") for number in range(AT_ONCE)]
    held: list[bool] = []
    for _ in range(2):  # the second time, on memory that is in use
        held += [
            _at_once("puts", pid, idle, lambda number: _request(ours, "POST", PUT, bodies[number])),
            _at_once("gets", pid, idle, lambda number: _request(ours, "POST", GET, gets[number])),
        ]
    return all(held)


def main() -> None:
    """Print a table; fail where a bound does not hold."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        files = Path(folder) / "files"
        files.mkdir()
        with _toolgate(Path(folder) / "data") as ours, module("files", str(files)) as bare:
            held = [_compare_memory(ours)]
            body = _put_body("one")
            _request(ours, "POST", PUT, body)
            answer = _request(ours, "POST", GET, _get_body("one"))
            (files / "answer").write_bytes(answer)
            held += [
                _compare(
                    "put",
                    lambda: _request(ours, "POST", PUT, body),
                    lambda: _request(bare, "POST", "/one", body),
                ),
                _compare(
                    "get",
                    lambda: _request(ours, "POST", GET, _get_body("one")),
                    lambda: _request(bare, "GET", "/answer"),
                ),
            ]
    if not all(held):
        raise SystemExit(1)

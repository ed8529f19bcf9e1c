"""A connection to each worker of a server: what every one of them knows, and not by chance.

Workers share a socket, so which of them takes a new connection is up to the system: ten new
connections may all reach the same one.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx2
import psutil
from tests.patience import PATIENT
from tests.servers import Server, pause

AT_ONCE = 8
"""Connections held together: a worker that is busy with one leaves the next to another."""


@contextmanager
def each_worker(server: Server, count: int, holder: str = "admin") -> Iterator[list[httpx2.Client]]:
    """A client for each worker, which keeps its connection."""
    deadline = time.monotonic() + PATIENT
    reached: dict[int, httpx2.Client] = {}
    with ExitStack() as held:
        while len(reached) < count:
            assert time.monotonic() < deadline, f"{len(reached)} of {count} workers were reached"
            with ExitStack() as these:
                clients = [these.enter_context(server.client(holder)) for _ in range(AT_ONCE)]
                reached |= _by_worker(server, clients)
                held.enter_context(these.pop_all())
        yield list(reached.values())


def until_each(clients: list[httpx2.Client], holds: Callable[[httpx2.Client], bool]) -> None:
    """Ask every worker until it holds for all of them."""
    deadline = time.monotonic() + PATIENT
    for client in clients:
        while not holds(client):
            assert time.monotonic() < deadline, "a worker does not know"
            pause()


def worker_pids(main: int) -> set[int]:
    """A main process's children that answer; beside them Python keeps one that cleans up."""
    children = psutil.Process(main).children()
    return {one.pid for one in children if "--multiprocessing-fork" in _command(one)}


def _by_worker(server: Server, clients: list[httpx2.Client]) -> dict[int, httpx2.Client]:
    by_port = {_port(client): client for client in clients}
    return {
        pid: by_port[connection.raddr.port]
        for pid in worker_pids(server.pid)
        for connection in psutil.Process(pid).net_connections("tcp")
        if connection.raddr and connection.raddr.port in by_port
    }


def _port(client: httpx2.Client) -> int:
    """The client's end of the connection that it keeps."""
    stream: Any = client.get("/healthz").extensions["network_stream"]
    return stream.get_extra_info("client_addr")[1]


def _command(process: psutil.Process) -> list[str]:
    """What a process was started with; nothing once it has ended."""
    try:
        return process.cmdline()
    except (psutil.ZombieProcess, psutil.NoSuchProcess):
        return []

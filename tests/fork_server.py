"""The fork server for tests: has imported toolgate once, and forks a process for each request.

python tests/fork_server.py DESCRIPTOR_OF_A_LISTENING_SOCKET

Ends, and kills what it started, when its standard input ends: with the process that holds it open.
It has no threads, no event loop and no signal handlers, so that nothing of it lives on in a child.
"""

import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NUMBER = struct.Struct("!q")
STREAMS = 3
LIFELINE = 0
IMPORTED_LATE = (
    "alembic.command",
    "alembic.config",
    "alembic.op",
    "anyio._backends._asyncio",
    "mako.template",
    "typer._adapters",
    "uvicorn.lifespan.on",
    "uvicorn.loops.auto",
    "uvloop",
)
"""What no module of toolgate imports, but its dependencies when they are used."""


def preload() -> None:
    """Import all of toolgate, and what it needs."""
    import toolgate

    for name in IMPORTED_LATE:
        importlib.import_module(name)

    for module in pkgutil.walk_packages(toolgate.__path__, "toolgate."):
        if ".migrations." not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # or the first collection in each child would copy every page


@dataclass
class Request:
    """What a child is to be."""

    arguments: list[str]
    cwd: str
    env: dict[str, str]
    new_session: bool
    streams: list[int]


@dataclass
class Child:
    """A forked process, and the connection of whoever asked for it."""

    connection: socket.socket
    pid: int
    descriptor: int
    """Readable once the process has ended."""

    def tell(self) -> None:
        """Say how it ended. It stays a zombie until that is read, so its id remains its own."""
        how = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        assert how is not None
        status = how.si_status << 8 if how.si_code == os.CLD_EXITED else how.si_status
        say(self.connection, status)

    def end(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class ForkServer:
    """Forks on request until its standard input ends."""

    def __init__(self, listening: socket.socket) -> None:
        self._listening = listening
        self._children: list[Child] = []
        self._selector = selectors.PollSelector()  # an epoll would be shared with each child
        self._when_readable(listening, self._fork)
        self._when_readable(LIFELINE, self._stop)
        self._goes_on = True
        self._request: Request | None = None
        """In a child, what it is to be."""

    def serve(self) -> Request | None:
        """Returns in each child its request, and None at the end."""
        while self._goes_on:
            for key, _ in self._selector.select():
                if self._goes_on and key.fd in self._selector.get_map():
                    key.data()
        self._close()
        return self._request

    def _when_readable(self, source: socket.socket | int, act: Callable[[], None]) -> None:
        self._selector.register(source, selectors.EVENT_READ, act)

    def _fork(self) -> None:
        connection, _ = self._listening.accept()
        request = received(connection)
        if request is None:
            connection.close()
            return
        pid = os.fork()
        if pid == 0:
            connection.close()
            self._request, self._goes_on = request, False
            return
        for stream in request.streams:
            os.close(stream)
        say(connection, pid)
        child = Child(connection, pid, os.pidfd_open(pid))
        self._children.append(child)
        self._when_readable(child.descriptor, lambda: self._tell(child))
        self._when_readable(connection, lambda: self._forget(child))

    def _tell(self, child: Child) -> None:
        self._selector.unregister(child.descriptor)
        child.tell()

    def _forget(self, child: Child) -> None:
        """Whoever asked for it has read its status, or wants nothing of it any more."""
        child.end()
        self._release(child)

    def _release(self, child: Child) -> None:
        for source in (child.descriptor, child.connection):
            with suppress(KeyError):
                self._selector.unregister(source)
        child.connection.close()
        os.close(child.descriptor)
        self._children.remove(child)

    def _stop(self) -> None:
        self._goes_on = False
        for child in self._children:
            child.end()

    def _close(self) -> None:
        for child in list(self._children):
            self._release(child)
        self._selector.close()
        self._listening.close()


def received(connection: socket.socket) -> Request | None:
    """What is asked for; None from someone who has gone."""
    size, streams, _, _ = socket.recv_fds(connection, NUMBER.size, STREAMS)
    body = b""
    if len(streams) == STREAMS:
        with connection.makefile("rb") as reader:
            body = reader.read(NUMBER.unpack(size)[0])
    try:
        return Request(**json.loads(body), streams=streams)
    except ValueError:
        for stream in streams:
            os.close(stream)
        return None


def say(connection: socket.socket, number: int) -> None:
    with suppress(OSError):  # whose end is seen in its turn
        connection.sendall(NUMBER.pack(number))


def become(request: Request) -> None:
    """Be what `python -m` would be with these arguments, to the end of the program."""
    if request.new_session:
        os.setsid()
    for target, stream in enumerate(request.streams):
        os.dup2(stream, target)
        os.close(stream)
    os.environ.clear()
    os.environ.update(request.env)
    time.tzset()
    os.chdir(request.cwd)
    flag, module, *rest = request.arguments
    assert flag == "-m", request.arguments
    sys.path.insert(0, request.cwd)
    sys.argv = [flag, *rest]
    sys.orig_argv = [sys.executable, *request.arguments]
    sys.stdin = sys.__stdin__ = opened(0, sys.stdin)
    sys.stdout = sys.__stdout__ = opened(1, sys.stdout)
    sys.stderr = sys.__stderr__ = opened(2, sys.stderr)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def opened(descriptor: int, former: Any) -> io.TextIOWrapper:
    """A standard stream as the interpreter opens it."""
    reads, direct = descriptor == 0, bool(os.environ.get("PYTHONUNBUFFERED"))
    buffering = 0 if direct and not reads else -1
    stream: Any = open(descriptor, "rb" if reads else "wb", buffering, closefd=False)  # noqa: SIM115
    return io.TextIOWrapper(
        stream,
        encoding=former.encoding,
        errors=former.errors,
        newline="\n",
        line_buffering=not direct and (descriptor == 2 or stream.isatty()),
        write_through=direct,
    )


def main() -> None:
    """Preload, serve, and in each child be what was asked for."""
    del sys.path[0]  # the folder of this file
    listening = socket.socket(fileno=int(sys.argv[1]))
    address = Path(listening.getsockname())
    preload()
    request = ForkServer(listening).serve()
    if request is not None:
        become(request)
        return
    address.unlink()
    address.parent.rmdir()


if __name__ == "__main__":
    main()

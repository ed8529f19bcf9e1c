"""Processes that start cheaply: `python -m MODULE`, forked from one that has imported toolgate.

More than half of what a server costs a test, and nearly all of what a command costs it, is the
interpreter's start and its imports. `Popen` and `run` are in all else those of `subprocess`, which
remains the one to take where the start itself is tested. Only Linux lets a process be watched that
is another's child; elsewhere interpreters are started.
"""

import atexit
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tests.fork_client import ask, number

HERE = Path(__file__).parent
FORKS = sys.platform == "linux"
UNBUFFERED = "PYTHONUNBUFFERED"

_starting = threading.Lock()


def run(
    args: list[str],
    *,
    input: Any = None,
    capture_output: bool = False,
    timeout: float | None = None,
    check: bool = False,
    **options: Any,
) -> "subprocess.CompletedProcess[Any]":
    """As `subprocess.run`."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Popen(args, **options) as process:
        try:
            output, errors = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    ended = subprocess.CompletedProcess(args, process.returncode, output, errors)
    if check:
        ended.check_returncode()
    return ended


def command(*arguments: str) -> list[str]:
    """A command line that does what `python ARGUMENTS` does, for someone else to start."""
    if not FORKS:
        return [sys.executable, *arguments]
    client = [sys.executable, "-I", "-S", str(HERE / "fork_client.py")]
    return [*client, address(), *arguments]


class Forked(subprocess.Popen[Any]):
    """`subprocess.Popen` for what begins with `sys.executable, "-m"`, with the parts replaced that
    start a process and ask how it ended: it is not a child of this one."""

    _connection: socket.socket
    _close_pipe_fds: Callable[..., None]
    _handle_exitstatus: Callable[[int], None]
    _waitpid_lock: threading.Lock

    def _execute_child(
        self,
        args: list[str],
        executable: None,
        preexec_fn: None,
        close_fds: bool,
        pass_fds: tuple[int, ...],
        cwd: "os.PathLike[str] | str | None",
        env: dict[str, str] | None,
        startupinfo: None,
        creationflags: int,
        shell: bool,
        p2cread: int,
        p2cwrite: int,
        c2pread: int,
        c2pwrite: int,
        errread: int,
        errwrite: int,
        restore_signals: bool,
        gid: None,
        gids: None,
        uid: None,
        umask: int,
        start_new_session: bool,
        process_group: int,
    ) -> None:
        program, *arguments = args
        cannot = (executable, preexec_fn, pass_fds or None, shell or None, gid, gids, uid)
        if program != sys.executable or arguments[:1] != ["-m"] or any(cannot):
            raise ValueError(f"only `{sys.executable} -m MODULE` can be forked, not {args}")
        env = dict(os.environ) if env is None else env
        inherited = [p2cread, c2pwrite, errwrite]
        self._connection, self.pid = ask(
            address(),
            arguments,
            cwd=os.fspath(cwd) if cwd else os.getcwd(),
            env=checked(env),
            streams=[own if given == -1 else given for own, given in enumerate(inherited)],
            new_session=start_new_session,
        )
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        """As `os.waitpid` would answer for a child."""
        try:
            status = number(self._connection, socket.MSG_DONTWAIT if wait_flags else 0)
        except BlockingIOError:
            return 0, 0
        self._connection.close()
        return self.pid, status

    def _internal_poll(self, _deadstate: int | None = None) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):
            try:
                if self.returncode is None:
                    pid, status = self._try_wait(os.WNOHANG)
                    if pid:
                        self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode


Popen: Callable[..., "subprocess.Popen[Any]"] = Forked if FORKS else subprocess.Popen


def checked(env: dict[str, str]) -> dict[str, str]:
    """Refuse what an interpreter reads when it starts, which none does here."""
    for name, value in env.items():
        if name.startswith("PYTHON") and name != UNBUFFERED and os.environ.get(name) != value:
            raise ValueError(f"{name} has no effect on a process that is forked")
    return env


def address() -> str:
    """Where the fork server of this process listens; it is started at first use."""
    with _starting:
        return _fork_server()


@cache
def _fork_server() -> str:
    path = Path(tempfile.mkdtemp(prefix="toolgate-")) / "fork-server"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        server = subprocess.Popen(
            [sys.executable, str(HERE / "fork_server.py"), str(listening.fileno())],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[listening.fileno()],
            start_new_session=True,
        )
    atexit.register(server.communicate)  # which ends its standard input, and so the server
    return str(path)

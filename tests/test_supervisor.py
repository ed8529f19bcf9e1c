"""The process that keeps the workers alive says when it had to replace one."""

import pytest
import uvicorn
from uvicorn.supervisors import Multiprocess

from toolgate.shutdown import Supervisor


class Worker:
    def __init__(self, pid: int, exitcode: int | None) -> None:
        self.pid = pid
        self.exitcode = exitcode


def test_a_worker_that_was_killed_is_told_with_its_number_and_exit_code(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor = Supervisor(uvicorn.Config("app:app", workers=2), sockets=[])
    supervisor.processes = [Worker(7, -9), Worker(8, None)]  # pyright: ignore[reportAttributeAccessIssue]

    def replace(self: Multiprocess) -> None:
        self.processes = [Worker(9, None), self.processes[1]]  # pyright: ignore[reportAttributeAccessIssue]

    monkeypatch.setattr(Multiprocess, "keep_subprocess_alive", replace)
    supervisor.keep_subprocess_alive()
    assert caplog.messages == ["worker 7 ended with exit code -9 and was replaced"]

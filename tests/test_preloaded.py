"""Processes that are forked are as those with an interpreter of their own."""

import json
import os
import select
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests import preloaded
from tests.faults.server import until
from tests.patience import PATIENT
from tests.servers import ROOT

pytestmark = pytest.mark.skipif(not preloaded.FORKS, reason="processes are forked on Linux only")

ECHO = "import sys; print(sys.argv[1], sys.stdin.read(), end='')"
WAITING = "import sys; print('up', flush=True); sys.stdin.read()"
OBEDIENT = "import signal, sys; signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\n" + WAITING


def by_fork(arguments: list[str], **options: Any) -> "subprocess.Popen[Any]":
    return preloaded.Popen([sys.executable, *arguments], **options)


def by_stand_in(arguments: list[str], **options: Any) -> "subprocess.Popen[Any]":
    return subprocess.Popen(preloaded.command(*arguments), **options)


def by_interpreter(arguments: list[str], **options: Any) -> "subprocess.Popen[Any]":
    return subprocess.Popen([sys.executable, *arguments], **options)


PIPES: dict[str, Any] = {
    "stdin": subprocess.PIPE,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "text": True,
}
FORKED = pytest.mark.parametrize("start", [by_fork, by_stand_in])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, code in (PROGRAMS | ENDS).items():
        (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    return tmp_path


PROGRAMS = {"echo": ECHO, "waiting": WAITING, "obedient": OBEDIENT}
ENDS = {
    "falls_off_the_end": "print('out')",
    "a_code": "print('out'); raise SystemExit(7)",
    "a_message": "raise SystemExit('no')",
    "an_exception": "raise KeyError('gone')",
    "interrupted": "raise KeyboardInterrupt",
    "killed": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
    "terminated": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "exits_at_once": "import os; os._exit(9)",
    "at_exit": "import atexit; atexit.register(print, 'last')",
    "a_thread": "import threading; go = threading.Event()\n"
    "threading.Thread(target=lambda: (go.wait(), print('out'))).start()\n"
    "import threading; threading.Timer(0.01, go.set).start()",
    "not_flushed": "import sys; sys.stdout.write('out'); sys.stderr.write('err')",
    "not_there_at_all": "import not_there",
}


@FORKED
@pytest.mark.parametrize("end", ENDS)
def test_it_ends_as_an_interpreter_does(folder: Path, end: str, start: Any) -> None:
    with by_interpreter(["-m", end], cwd=folder, **PIPES) as real:
        out, err = real.communicate(timeout=PATIENT)
    with start(["-m", end], cwd=folder, **PIPES) as forked:
        assert forked.communicate(timeout=PATIENT)[0] == out
        assert forked.returncode == real.returncode
    with start(["-m", end], cwd=folder, **PIPES) as forked:
        assert forked.communicate(timeout=PATIENT)[1].splitlines()[-1:] == err.splitlines()[-1:]


STATE = """
import json, multiprocessing.spawn, os, random, signal, sys
main = sys.modules["__main__"]
print(json.dumps({
    "handlers": {str(one): str(signal.getsignal(one)) for one in signal.valid_signals()},
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "argv": sys.argv, "orig_argv": sys.orig_argv[1:], "path": sys.path, "flags": str(sys.flags),
    "warnings": sys.warnoptions, "executable": sys.executable, "prefix": sys.prefix,
    "cwd": os.getcwd(), "environ": dict(os.environ), "umask": os.umask(0),
    "main": [main.__name__, main.__spec__.name, main.__file__, main.__package__],
    "worker": multiprocessing.spawn.get_preparation_data("one")["init_main_from_name"],
    "streams": [[type(one).__name__, type(one.buffer).__name__, one.encoding, one.errors,
                 one.newlines, one.line_buffering, one.write_through, one.fileno()]
                for one in (sys.stdin, sys.stdout, sys.stderr)],
    "tests": "tests" in sys.modules,
    "descriptors": [one for one in range(1000) if os.path.exists(f"/proc/self/fd/{one}")],
}))
"""


@FORKED
@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
def test_it_finds_what_an_interpreter_finds(tmp_path: Path, unbuffered: str, start: Any) -> None:
    (tmp_path / "state.py").write_text(STATE, encoding="utf-8")
    arguments = ["-m", "state", "one", "two words", "--three=ä"]
    env = os.environ | {"EXTRA": "ä", "PYTHONUNBUFFERED": unbuffered}
    found: list[dict[str, Any]] = []
    for one in (by_interpreter, start):
        with one(arguments, cwd=tmp_path, env=env, **PIPES) as process:
            out, err = process.communicate(timeout=PATIENT)
        assert (process.returncode, err) == (0, "")
        found.append(json.loads(out))
    real, forked = found
    if unbuffered:  # the interpreter's own flag, which nothing reads once the streams are open
        forked["flags"] = forked["flags"].replace("unbuffered=0", "unbuffered=1")
    for name, value in real.items():
        assert forked[name] == value, name


def test_two_do_not_draw_the_same_random_numbers(folder: Path) -> None:
    code = "import random, secrets; print(random.random(), secrets.token_hex())"
    (folder / "drawing.py").write_text(code, encoding="utf-8")
    drawn = [
        preloaded.run([sys.executable, "-m", "drawing"], cwd=folder, capture_output=True).stdout
        for _ in range(2)
    ]
    assert drawn[0]
    assert drawn[0] != drawn[1]


@FORKED
def test_much_goes_in_and_out(folder: Path, start: Any) -> None:
    much = "0123456789" * 500_000
    with start(["-m", "echo", "all:"], cwd=folder, **PIPES) as process:
        out, err = process.communicate(much, timeout=PATIENT)
    assert (process.returncode, err) == (0, "")
    assert out == f"all: {much}"


def test_many_at_once_have_each_their_own(folder: Path) -> None:
    def one(number: int) -> str:
        command = [sys.executable, "-m", "echo", str(number)]
        ended = preloaded.run(
            command, cwd=folder, input=f"for {number}", capture_output=True, text=True, check=True
        )
        return ended.stdout

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(24))) == [f"{number} for {number}" for number in range(24)]


def test_one_does_not_hold_the_streams_of_another(folder: Path) -> None:
    with by_fork(["-m", "waiting"], cwd=folder, **PIPES) as first:
        assert first.stdout
        assert first.stdout.readline() == "up\n"
        with by_fork(["-m", "waiting"], cwd=folder, **PIPES) as second:
            assert second.stdout
            assert second.stdout.readline() == "up\n"
            assert first.communicate(timeout=PATIENT) == ("", ""), "its input ended, and its output"
            assert second.poll() is None
            second.communicate(timeout=PATIENT)
    assert (first.returncode, second.returncode) == (0, 0)


@FORKED
def test_signals_reach_it(folder: Path, start: Any) -> None:
    for program, number, code in (
        ("waiting", signal.SIGTERM, -signal.SIGTERM),
        ("waiting", signal.SIGKILL, -signal.SIGKILL),
        ("waiting", signal.SIGINT, -signal.SIGINT),
        ("obedient", signal.SIGTERM, 3),
    ):
        with start(["-m", program], cwd=folder, **PIPES) as process:
            assert process.stdout.readline() == "up\n"
            assert process.poll() is None
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0)
            process.send_signal(number)
            assert process.wait(PATIENT) == process.poll() == code
            process.kill()  # which does nothing any more


def test_it_is_there_until_it_was_waited_for(folder: Path) -> None:
    with by_fork(["-m", "waiting"], cwd=folder, **PIPES) as process:
        os.kill(process.pid, signal.SIGKILL)
        seen = psutil.Process(process.pid)
        until(lambda: seen.status() == psutil.STATUS_ZOMBIE)
        assert process.wait() == -signal.SIGKILL
        until(lambda: not seen.is_running())


def test_a_session_of_its_own(folder: Path) -> None:
    with by_fork(["-m", "waiting"], cwd=folder, **PIPES, start_new_session=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        assert os.getsid(process.pid) == os.getpgid(process.pid) == process.pid
        os.killpg(process.pid, signal.SIGTERM)
    assert process.returncode == -signal.SIGTERM


def test_files_are_streams_too(folder: Path) -> None:
    out = folder / "out"
    with out.open("w") as target:
        command = [sys.executable, "-m", "echo", "heard:"]
        ended = preloaded.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=target, stderr=subprocess.STDOUT
        )
    assert (ended.returncode, ended.stdout) == (0, None)
    assert out.read_text() == "heard: "


@pytest.mark.parametrize(
    ("command", "env"),
    [
        ([sys.executable, "-c", "pass"], {}),
        (["/bin/true"], {}),
        ([sys.executable, "-m", "echo"], {"PYTHONHASHSEED": "7"}),
        ([sys.executable, "-m", "echo"], {"PYTHONWARNINGS": "error"}),
    ],
    ids=["code", "another program", "hash seed", "warnings"],
)
def test_what_only_an_interpreter_can_do_is_refused(command: list[str], env: Any) -> None:
    with pytest.raises(ValueError, match="fork"):
        preloaded.Popen(command, env=os.environ | env)


STARTER = """
import subprocess, sys
from tests import preloaded

process = preloaded.Popen([sys.executable, "-m", "waiting"], cwd=sys.argv[1],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
process.stdout.readline()
print(process.pid, preloaded.address(), flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_the_fork_server_ends_with_whoever_started_it(folder: Path, number: signal.Signals) -> None:
    starter = subprocess.Popen([sys.executable, "-c", STARTER, folder], cwd=ROOT, **PIPES)
    assert starter.stdout
    with starter:
        pid, address = starter.stdout.readline().split()
        forked = psutil.Process(int(pid))
        server = forked.parent()
        assert server
        assert "fork_server.py" in server.cmdline()[1]
        starter.send_signal(number)
        _, alive = psutil.wait_procs([forked, server], PATIENT)
    assert not alive
    assert not Path(address).parent.exists()


def test_a_stand_in_that_is_killed_takes_the_process_with_it(folder: Path) -> None:
    with by_stand_in(["-m", "waiting"], cwd=folder, **PIPES) as process:
        assert process.stdout
        assert process.stdout.readline() == "up\n"
        process.kill()
        ready, _, _ = select.select([process.stdout], [], [], PATIENT)
        assert ready, "nobody holds its output open"
        assert process.stdout.read() == ""

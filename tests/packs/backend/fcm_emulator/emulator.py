"""An emulator of Firebase Cloud Messaging (npm `@pleaseai/emulate-firebase`), as a process.

Installed once, from the lock file beside this module, into `.cache/node/fcm`.
"""

import fcntl
import hashlib
import shutil
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.github.emulator import NODE, NPM
from tests.patience import PATIENT

HERE = Path(__file__).parent
INSTALLED = HERE.parents[3] / ".cache" / "node" / "fcm"
FILES = ("package.json", "package-lock.json", "host.mjs")


def install() -> None:
    """Install what the lock file names, unless it is there; one process at a time."""
    INSTALLED.mkdir(parents=True, exist_ok=True)
    wanted = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in FILES)).hexdigest()
    stamp = INSTALLED / "installed"
    with (INSTALLED / "lock").open("w", encoding="utf-8") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted:
            return
        for name in FILES:
            shutil.copyfile(HERE / name, INSTALLED / name)
        command = [NODE, NPM, "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        subprocess.run(command, cwd=INSTALLED, check=True, capture_output=True, timeout=300)
        stamp.write_text(wanted, encoding="utf-8")


@contextmanager
def fcm_emulator() -> Generator[str]:
    """Where it runs, for as long as the block lasts."""
    install()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [NODE, "host.mjs", str(port)]
    with subprocess.Popen(command, cwd=INSTALLED, stdout=subprocess.DEVNULL) as process:
        try:
            _wait(port, process)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def _wait(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + PATIENT
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            assert process.poll() is None, "the emulator did not start"
            assert time.monotonic() < deadline
            time.sleep(0.05)

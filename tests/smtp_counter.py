"""A real SMTP server (aiosmtpd) in a process of its own: one line in a file for each mail it took.

`python -m tests.smtp_counter FILE` prints its port. The line is written before the client is told,
so that the file is what the server knows, whatever becomes of its clients.
"""

import asyncio
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class CountingServer:
    """A running server, and what it has taken."""

    port: int
    file: Path

    @property
    def url(self) -> str:
        return f"smtp://127.0.0.1:{self.port}"

    def taken(self) -> Counter[str]:
        """How many mails each recipient got."""
        return Counter(self.file.read_text(encoding="utf-8").splitlines())

    def count(self) -> int:
        """How many mails it took so far."""
        return self.file.read_bytes().count(b"\n")


class Handler:
    """Takes every mail."""

    def __init__(self, file: int) -> None:
        self._file = file

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        os.write(self._file, "".join(f"{one}\n" for one in envelope.rcpt_tos).encode())
        return "250 taken"


@contextmanager
def counting_server(folder: Path) -> Generator[CountingServer]:
    """The server, until the block ends."""
    file = folder / "taken.txt"
    file.touch()
    command = [sys.executable, "-m", "tests.smtp_counter", str(file)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield CountingServer(int(process.stdout.readline()), file)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


async def serve(file: Path) -> None:
    """Take mails until SIGTERM."""
    handler = Handler(os.open(file, os.O_WRONLY | os.O_APPEND))
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: SMTP(handler, hostname="counter", loop=loop), "127.0.0.1", 0
    )
    stopped = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    print(server.sockets[0].getsockname()[1], flush=True)
    await stopped.wait()
    server.close()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))

"""An SMTP server (aiosmtpd) that takes every mail: `python -m bench.apps.mail_server FOLDER PORT`.

Each mail is a byte in the file `taken`; `mail` has the first one as it came.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP


class Handler:
    """Takes every mail."""

    def __init__(self, folder: Path) -> None:
        self._first = folder / "mail"
        self._taken = os.open(folder / "taken", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802 (aiosmtpd's)
        if not self._first.exists():
            self._first.write_bytes(envelope.original_content)
        os.write(self._taken, b".")
        return "250 taken"


async def main(folder: Path, port: int) -> None:
    loop, handler = asyncio.get_running_loop(), Handler(folder)
    server = await loop.create_server(
        lambda: SMTP(handler, hostname="bench", loop=loop), "127.0.0.1", port
    )
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))

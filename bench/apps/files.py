"""A bare ASGI handler: what comes goes to a file and onto the disk, what is asked for comes back.

python -m bench.apps.files FOLDER PORT
"""

import os
import sys
from pathlib import Path
from typing import Any

from bench.apps.serving import serve

PIECE = 65536


class Files:
    """One file per path."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        file = self._folder / scope["path"].strip("/").replace("/", "-")
        if scope["method"] == "POST":
            await self._store(file, receive)
            size = 2
        else:
            size = file.stat().st_size
        headers = [(b"content-length", b"%d" % size)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if scope["method"] == "POST":
            return await send({"type": "http.response.body", "body": b"ok"})
        with file.open("rb", buffering=0) as opened:
            while piece := opened.read(PIECE):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def _store(self, file: Path, receive: Any) -> None:
        with file.open("wb", buffering=0) as opened:
            more = True
            while more:
                message = await receive()
                opened.write(message.get("body", b""))
                more = message.get("more_body", False)
            os.fsync(opened.fileno())


if __name__ == "__main__":
    serve(Files(Path(sys.argv[1])), int(sys.argv[2]), lifespan="off")

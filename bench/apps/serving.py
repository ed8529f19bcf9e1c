"""uvicorn as `toolgate serve` runs it: uvloop, httptools, no access log, no headers of its own."""

from typing import Any

import uvicorn


def serve(app: Any, port: int, *, lifespan: str = "on") -> None:
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=port,
        loop="uvloop",
        http="httptools",
        lifespan=lifespan,  # pyright: ignore[reportArgumentType]
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
    )

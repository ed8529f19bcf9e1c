"""An ASGI application on a free port of loopback, in a thread of the test's own process."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import uvicorn
from tests.patience import PATIENT
from tests.servers import pause


@contextmanager
def served_in_thread(app: Any, *, cut: bool = False) -> Generator[str]:
    """Where it is served; with `cut`, responses under way are cut at the end."""
    config = uvicorn.Config(
        app,
        port=0,
        log_level="critical",
        lifespan="off",
        # Else a busy machine finds idle connections closed under the next request.
        timeout_keep_alive=int(PATIENT),
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    deadline = time.monotonic() + PATIENT
    while not server.started:
        assert time.monotonic() < deadline, f"{type(app).__name__} did not start"
        assert thread.is_alive()
        pause()
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit, server.force_exit = True, cut
        thread.join(PATIENT)

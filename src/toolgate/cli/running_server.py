"""The toolgate that answers on the configured port, if one does."""

import errno
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from toolgate.cli.serve import url_of

if TYPE_CHECKING:
    from ssl import SSLContext
    from urllib.error import HTTPError

    from toolgate.settings import Settings

ANSWER_SECONDS = 5
"""Longer than a server takes to call itself not ready."""
REFUSALS = (421, 503)
"""Of a toolgate that is not meant for this host name, and of one that is not ready."""
DATABASE = "database"


@dataclass(frozen=True, slots=True)
class RunningServer:
    """A server that answers, and what its readiness check says."""

    url: str
    failing: tuple[str, ...] = ()
    """The parts that do not work, as `/readyz` names them."""

    @property
    def has_lost_database(self) -> bool:
        """Whether it cannot use its database, such as after the file was deleted or replaced."""
        return DATABASE in self.failing


def running_server(settings: "Settings") -> RunningServer | None:
    """The server where these settings say that one listens."""
    # Imported here: most commands ask no server.
    import http.client
    import urllib.error
    import urllib.request

    if not _is_taken(settings):
        return None
    url = url_of(settings.server)
    try:
        tls = _tls_context(settings.data) if url.startswith("https:") else None
        # Asked directly: a proxy in the environment knows nothing of this machine's ports.
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls)
        )
        with opener.open(f"{url}/readyz", timeout=ANSWER_SECONDS) as answer:
            ready = json.load(answer) == {"status": "ready"}
            return RunningServer(url) if ready else None
    except urllib.error.HTTPError as refusal:
        with refusal:
            ours = refusal.code in REFUSALS and "x-request-id" in refusal.headers
            return RunningServer(url, _failing_parts(refusal)) if ours else None
    except (OSError, ValueError, http.client.HTTPException):
        return None


def _is_taken(settings: "Settings") -> bool:
    """Whether something may listen there; else there is nobody to wait for."""
    from toolgate.http_server import listen

    try:
        listen(settings).close()
    except OSError as problem:
        return problem.errno in (errno.EADDRINUSE, errno.EACCES)
    return False


def _failing_parts(refusal: "HTTPError") -> tuple[str, ...]:
    try:
        body: Any = json.load(refusal)
    except ValueError:
        return ()
    parts = cast("dict[str, Any]", body).get("failing") if isinstance(body, dict) else None
    return tuple(map(str, cast("list[Any]", parts))) if isinstance(parts, list) else ()


def _tls_context(data: Path) -> "SSLContext":
    import ssl

    from toolgate.certificates import files_in

    return ssl.create_default_context(cafile=files_in(data).ca)

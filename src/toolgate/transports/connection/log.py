"""What requests leave in the log of the libraries that serve them: a line a minute of each kind.

uvicorn and the MCP SDK write a line, often with a traceback, for every request that is odd and for
every client that leaves at the wrong moment. Anybody can send thousands of those.
"""

import logging
from typing import cast

from toolgate.gate.failures import origin
from toolgate.throttled_log import ThrottledLog

logger = logging.getLogger(__name__)

UVICORN = "uvicorn.error"
MCP = "mcp"
NO_WEBSOCKETS = "No supported WebSocket library detected."
MESSAGES = {
    "Invalid HTTP request received.": "A request could not be parsed, or had too many headers.",
    "Unsupported upgrade request.": "A request asked for another protocol, such as WebSocket; "
    "it was answered as plain HTTP.",
    "Exception in ASGI application": "A request could not be answered.",
    "ASGI callable returned without starting response.": "A request was not answered.",
    "ASGI callable returned without completing response.": "A request was not answered in full; "
    "its client may have left.",
}
"""What uvicorn says of every such request, and what we say once a minute."""
CLOSED = "the handler is closed"
"""What uvloop says of a write on a connection that has just been closed."""
MAX_KINDS = 1000


class RequestLog(logging.Filter):
    """Holds back the lines that uvicorn and the MCP SDK write for each request."""

    def __init__(self) -> None:
        super().__init__()
        self._logs: dict[tuple[str, str], ThrottledLog] = {}
        self._mcp = _Handler(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether uvicorn's own line is to be written."""
        said = str(record.msg).strip()
        if said in MESSAGES:
            self.note(record, MESSAGES[said])
            return False
        return not said.startswith(NO_WEBSOCKETS)  # none is wanted

    def note(self, record: logging.LogRecord, message: str) -> None:
        """Log it, unless it was logged in this minute; the traceback only at level DEBUG."""
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            logger.debug("%s", message, exc_info=error)
        if is_client_gone(error):
            return
        where = origin(error) if error is not None else ""
        log = self._logs.get((message, where))
        if log is None and len(self._logs) < MAX_KINDS:
            log = self._logs[message, where] = ThrottledLog(logger, level=record.levelno)
        if log is not None:
            log.record("%s (%s)" if where else "%s%s", message, where)

    def flush(self) -> None:
        """Say how many came, if their minute is over."""
        for log in self._logs.values():
            log.flush()

    def install(self) -> None:
        """Filter what the libraries log from now on."""
        logging.getLogger(UVICORN).addFilter(self)
        sdk = logging.getLogger(MCP)
        sdk.addHandler(self._mcp)
        sdk.propagate = False

    def remove(self) -> None:
        """Filter it no more."""
        logging.getLogger(UVICORN).removeFilter(self)
        sdk = logging.getLogger(MCP)
        sdk.removeHandler(self._mcp)
        sdk.propagate = True


class _Handler(logging.Handler):
    """Takes the place of the log's handlers for all loggers of the MCP SDK."""

    def __init__(self, log: RequestLog) -> None:
        super().__init__(logging.WARNING)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Tell what happened without its arguments, which are the client's."""
        self._log.note(record, f"MCP SDK: {record.msg}")


def is_client_gone(error: BaseException | None) -> bool:
    """Whether this is nothing but a write on a connection that is closed."""
    if isinstance(error, BaseExceptionGroup):
        parts = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return all(is_client_gone(one) for one in parts)
    return isinstance(error, RuntimeError) and CLOSED in str(error)

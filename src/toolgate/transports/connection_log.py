"""What strangers' requests leave in the log: a line a minute, however many come."""

import logging

from toolgate.throttled_log import ThrottledLog

logger = logging.getLogger(__name__)

UVICORN = "uvicorn.error"
NO_WEBSOCKETS = "No supported WebSocket library detected."
TOLD = {
    "Invalid HTTP request received.": "A request could not be parsed, or had too many headers.",
    "Unsupported upgrade request.": "A request asked for another protocol, such as WebSocket; "
    "it was answered as plain HTTP.",
}
"""What uvicorn says of every such request, and what we say once a minute."""


class RefusedRequests(logging.Filter):
    """Holds back the lines that uvicorn writes for each odd request."""

    def __init__(self) -> None:
        super().__init__()
        self._logs = {said: ThrottledLog(logger) for said in TOLD}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether uvicorn's own line is to be written."""
        said = str(record.msg)
        if said in TOLD:
            self._logs[said].happened(TOLD[said])
            return False
        return not said.startswith(NO_WEBSOCKETS)  # none is wanted

    def flush(self) -> None:
        """Say how many came, if their minute is over."""
        for log in self._logs.values():
            log.flush()

    def install(self) -> None:
        """Filter uvicorn's log from now on."""
        logging.getLogger(UVICORN).addFilter(self)

    def remove(self) -> None:
        """Filter it no more."""
        logging.getLogger(UVICORN).removeFilter(self)

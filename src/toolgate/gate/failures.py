"""What the log is told of calls that fail for a reason that is not the caller's."""

import logging

from toolgate.db.outages import is_outage
from toolgate.gate.errors import GateError
from toolgate.throttled_log import ThrottledLog

logger = logging.getLogger(__name__)

MOST_KINDS = 1000
SERVER_ERROR = 500


class FailureLog:
    """One line when a tool begins to fail in some way, then one a minute with a count.

    The words of an error may repeat arguments, so only what is known not to is logged; the rest is
    there at level DEBUG.
    """

    def __init__(self) -> None:
        self._logs: dict[tuple[str, str], ThrottledLog] = {}

    def note(self, request_id: str, tool: str, error: Exception) -> None:
        """Log why a call failed, unless that is told elsewhere or is the caller's business."""
        logger.debug("%s: %s failed", request_id, tool, exc_info=error)
        cause = error.__cause__ or error
        if is_outage(cause):
            return
        if isinstance(error, GateError) and error.status < SERVER_ERROR:
            return
        kind = type(cause).__name__
        if isinstance(cause, OSError) and cause.strerror:
            kind = f"{kind}: {cause.strerror}"
        log = self._logs.get((tool, kind))
        if log is None and len(self._logs) < MOST_KINDS:
            log = self._logs[tool, kind] = ThrottledLog(logger)
        if log is not None:
            log.happened("%s failed: %s (request id %s)", tool, kind, request_id)

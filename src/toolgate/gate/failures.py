"""What the log is told of calls that fail for a reason that is not the caller's.

The words of an error may repeat arguments and results (Pydantic quotes what it was given), and so
may a traceback. So the log has the type of the error and the line of code; the rest is there at
level DEBUG.
"""

import logging
import sysconfig
import traceback
from typing import cast

from pydantic import BaseModel, ValidationError
from sqlalchemy.exc import DBAPIError

from toolgate.db.outages import describe, is_outage
from toolgate.gate import context
from toolgate.gate.context import NotAWrite
from toolgate.gate.errors import BadResult, GateError
from toolgate.gate.validation_errors import errors_of
from toolgate.throttled_log import ThrottledLog

logger = logging.getLogger(__name__)

MAX_KINDS = 1000
SERVER_ERROR = 500
CONTEXT = context.__file__
"""What it raises, a handler asked for."""
LIBRARIES = tuple({sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")})


class FailureLog:
    """One line when a tool begins to fail in some way, then one a minute with a count."""

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
        self._log(request_id, tool, kind, logging.WARNING)

    def defect(self, request_id: str, tool: str, error: Exception) -> None:
        """Log an error that nobody expected: its type, and where to look."""
        logger.debug("%s: %s failed", request_id, tool, exc_info=error)
        kind = origin(error)
        if isinstance(error, DBAPIError | BadResult | NotAWrite):  # whose words are without values
            kind = f"{kind}: {describe(error)}"
        elif isinstance(error, ValidationError) and (fields := _wrong_fields(error)):
            kind = f"{kind}: {fields}"
        self._log(request_id, tool, kind, logging.ERROR)

    def _log(self, request_id: str, tool: str, kind: str, level: int) -> None:
        log = self._logs.get((tool, kind))
        if log is None and len(self._logs) < MAX_KINDS:
            log = self._logs[tool, kind] = ThrottledLog(logger, level=level)
        if log is not None:
            log.record("%s failed: %s (request id %s)", tool, kind, request_id)


def _wrong_fields(error: ValidationError) -> str:
    """Declared fields of a model that could not be made, and why; values may be in neither."""
    last = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-1:]
    made = last[0].f_locals.get("self") if last else None
    known = type(made).model_fields if isinstance(made, BaseModel) else {}
    wrong = [(one["loc"][0], one["type"]) for one in errors_of(error) if one["loc"]]
    return ", ".join(f"field {name} ({kind})" for name, kind in wrong if name in known)


def origin(error: BaseException) -> str:
    """The type of an error and where it was raised, as `KeyError in tools.py:7`.

    The line is the last one outside of libraries, which is the one to correct.
    """
    if isinstance(error, BaseExceptionGroup):
        return origin(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    kind, frames = type(error).__name__, traceback.extract_tb(error.__traceback__)
    if not frames:
        return kind
    own = [one for one in frames if not one.filename.startswith((*LIBRARIES, "<", CONTEXT))]
    last = (own or frames)[-1]
    return f"{kind} in {last.filename}:{last.lineno}"

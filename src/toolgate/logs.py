"""How a server's log lines look, and the line of a call.

All go to standard error. The level is for toolgate and for tools of one's own; libraries tell only
warnings, since what they say in detail may hold arguments.
"""

import json
import logging
import re
import sys
from typing import Any

from toolgate.sections import LogSettings

OURS = "toolgate"
TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
KNOWN = frozenset(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName"}
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class TextLines(logging.Formatter):
    """One line a record; further ones are indented, so that nobody can make up a record."""

    def __init__(self) -> None:
        super().__init__(TEXT)

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 (the library's name)
        """The line, with the request id where one is known."""
        line = CONTROL.sub("?", super().formatMessage(record))
        extra = "".join(f" {name}={value}" for name, value in _extra(record).items())
        return line.replace("\n", "\n  ") + CONTROL.sub("?", extra).replace("\n", "?")


class JsonLines(logging.Formatter):
    """One JSON object a record."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON on one line."""
        entry: dict[str, Any] = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S") + f".{int(record.msecs):03}",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extra(record),
        }
        if record.exc_info and record.exc_info[0]:
            entry["exception"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def _extra(record: logging.LogRecord) -> dict[str, Any]:
    """What was given with the record beside its message."""
    return {name: value for name, value in record.__dict__.items() if name not in KNOWN}


def set_up(settings: LogSettings) -> None:
    """Write every log line as the settings say."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if settings.format == "json" else TextLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger(OURS).setLevel(settings.level.upper())

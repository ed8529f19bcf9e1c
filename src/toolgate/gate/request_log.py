"""One log line for every call, where that is wanted (setting log.requests).

What has no audit row of its own has no line either: anybody can make thousands of such requests.
"""

import logging

from toolgate.gate.audit_records import Ended

logger = logging.getLogger("toolgate.requests")


def log_request(ended: Ended) -> None:
    """Who called what, how it ended and how long it took; never what with."""
    logger.info(
        "%s",
        ended.tool,
        extra={
            "request_id": ended.request_id,
            "transport": ended.transport,
            "principal": ended.principal.id,
            "decision": "allow" if ended.allowed else "deny",
            "rule": ended.rule,
            "status": ended.error_type or "success",
            "milliseconds": round(ended.seconds * 1000, 1),
        },
    )

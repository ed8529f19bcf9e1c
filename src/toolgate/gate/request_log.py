"""One log line for every call, where that is wanted (setting log.requests).

What has no audit row of its own has no line either: anybody can make thousands of such requests.
"""

import logging

from toolgate.gate.audit_records import Ended

logger = logging.getLogger("toolgate.requests")


def log_request(ended: Ended) -> None:
    """Who called what, how it ended and how long it took; never what with."""
    request_id, transport, principal, tool, allowed, rule, error_type, *_, seconds = ended
    logger.info(
        "%s",
        tool,
        extra={
            "request_id": request_id,
            "transport": transport,
            "principal": principal.id,
            "decision": "allow" if allowed else "deny",
            "rule": rule,
            "status": error_type or "success",
            "milliseconds": round(seconds * 1000, 1),
        },
    )

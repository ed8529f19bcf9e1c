"""What requests leave in the log, however many come."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from toolgate.transports.connection.log import UVICORN, RequestLog


@contextmanager
def installed() -> Iterator[None]:
    log = RequestLog()
    log.install()
    try:
        yield
    finally:
        log.remove()


def test_lines_about_strange_requests_are_told_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with installed():
        uvicorn = logging.getLogger(UVICORN)
        for _ in range(1000):
            uvicorn.warning("Invalid HTTP request received.")
            uvicorn.warning("Unsupported upgrade request.")
            uvicorn.warning("No supported WebSocket library detected. Please use …")
        uvicorn.warning("something else")
    assert caplog.messages == [
        "A request could not be parsed, or had too many headers.",
        "A request asked for another protocol, such as WebSocket; it was answered as plain HTTP.",
        "something else",
    ]


def raised(error: Exception) -> Exception:
    try:
        raise error
    except Exception as problem:
        return problem


def test_a_write_on_a_closed_connection_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    closed = RuntimeError("unable to perform operation on <TCPTransport>; the handler is closed")
    group = ExceptionGroup("unhandled errors", [raised(closed)])
    with installed():
        told = "Exception in ASGI application\n"
        logging.getLogger(UVICORN).error(told, exc_info=raised(closed))
        sdk = logging.getLogger("mcp.server.streamable_http")
        sdk.error("SSE response error", exc_info=group)
    assert caplog.messages == []


def test_defects_of_requests_are_told_once_a_minute_without_arguments(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with installed():
        for number in range(100):
            error = raised(KeyError("a secret"))
            logging.getLogger(UVICORN).error("Exception in ASGI application\n", exc_info=error)
            sdk = logging.getLogger("mcp.server.runner")
            sdk.error("handler for %r raised", f"secret {number}", exc_info=error)
    answered, of_sdk = caplog.messages
    assert answered.startswith("A request could not be answered. (KeyError in ")
    assert of_sdk.startswith("MCP SDK: handler for %r raised (KeyError in ")
    assert "secret" not in caplog.text

"""A class of connections that does not do what it should is found out before the server starts."""

import sys
from typing import Any

import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from toolgate.transports.connection.choice import NoConnections, connection_class
from toolgate.transports.connection.h11 import LimitedH11
from toolgate.transports.connection.httptools import LimitedHttpTools
from toolgate.transports.connection.known_heads import Connection

OURS = "toolgate.transports.connection."
UVICORNS = "uvicorn.protocols.http.httptools_impl"


def nothing(*_: Any) -> None:
    """What a method does that uvicorn calls no more."""


def test_known_heads_can_be_switched_off(caplog: pytest.LogCaptureFixture) -> None:
    assert connection_class(known_heads=True) is Connection
    assert connection_class(known_heads=False) is LimitedHttpTools
    assert caplog.messages == []


def without(missing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a module were not there when ours are imported."""
    for name in (OURS + "known_heads", OURS + "httptools", UVICORNS):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)


def test_where_httptools_is_missing_h11_is_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    without("httptools", monkeypatch)
    assert connection_class(known_heads=True) is LimitedH11
    assert caplog.messages == []


def test_a_module_that_uvicorn_has_no_more_is_told(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    without(UVICORNS, monkeypatch)
    assert connection_class(known_heads=True) is LimitedH11
    assert [UVICORNS in message for message in caplog.messages] == [True, True]


@pytest.mark.parametrize("name", ["_handle_known", "on_message_begin", "_write"])
def test_known_heads_that_do_not_work_are_left_out_and_the_log_says_so(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Connection, name, nothing)
    assert connection_class(known_heads=True) is LimitedHttpTools
    assert caplog.messages[-1].startswith("uvicorn is not as expected by Connection: ")


@pytest.mark.parametrize("name", ["on_message_begin", "on_headers_complete"])
def test_where_uvicorn_calls_a_method_no_more_its_other_parser_is_used(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LimitedHttpTools, name, getattr(HttpToolsProtocol, name))
    monkeypatch.setattr(Connection, name, getattr(HttpToolsProtocol, name))
    assert connection_class(known_heads=True) is LimitedH11


def test_a_parser_that_takes_a_body_for_the_next_request_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LimitedHttpTools, "_feed", HttpToolsProtocol.data_received)
    assert connection_class(known_heads=True) is LimitedH11


def test_where_no_class_is_fit_there_is_no_server(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(HttpToolsProtocol, "on_headers_complete", nothing)
    monkeypatch.setattr(H11Protocol, "data_received", nothing)
    with pytest.raises(NoConnections, match="would not be limited"):
        connection_class(known_heads=True)
    assert len(caplog.messages) == 3, "one for each class"

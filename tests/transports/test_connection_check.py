"""A class of connections that does not do what it should is found out before the server starts."""

import sys
from typing import Any

import pytest
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from toolgate.transports.connection_check import connection_class
from toolgate.transports.connections import Connection
from toolgate.transports.limited_h11 import LimitedH11
from toolgate.transports.limited_httptools import LimitedHttpTools

OURS = "toolgate.transports."


def nothing(*_: Any) -> None:
    """What a method does that uvicorn calls no more."""


def test_known_heads_can_be_switched_off(caplog: pytest.LogCaptureFixture) -> None:
    assert connection_class(known_heads=True) is Connection
    assert connection_class(known_heads=False) is LimitedHttpTools
    assert caplog.messages == []


def test_where_httptools_is_missing_h11_is_used(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, OURS + "connections", None)
    monkeypatch.setitem(sys.modules, OURS + "limited_httptools", None)
    assert connection_class(known_heads=True) is LimitedH11
    assert caplog.messages == []


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


def test_uvicorn_alone_is_the_last_resort(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for uvicorns in (HttpToolsProtocol, H11Protocol):
        monkeypatch.setattr(uvicorns, "data_received", nothing)
    assert connection_class(known_heads=True) == "auto"
    assert len(caplog.messages) == 4
    assert caplog.messages[-1] == (
        "Served by uvicorn alone: requests and connections are not limited."
    )

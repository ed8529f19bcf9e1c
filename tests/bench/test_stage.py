"""Who cannot take part is named, and the others run all the same."""

from bench.installing import Missing
from bench.stage import Stage
from bench.table import Book


def test_a_peer_that_cannot_be_installed_is_named_with_the_reason():
    def start():
        raise Missing("npm ci failed: no network")

    book = Book()
    with Stage(book) as stage:
        assert stage.peer("Toolbox", start) is None
        assert stage.peer("SDK", lambda: "running") == "running"
    assert book.skipped == ["Toolbox: npm ci failed: no network"]


def test_a_peer_can_be_left_out():
    book = Book()
    with Stage(book, without=["fastmcp"]) as stage:
        assert stage.peer("FastMCP", lambda: "running") is None
    assert book.skipped == ["FastMCP: left out by --without"]


def test_what_was_started_ends_with_the_stage():
    with Stage(Book()) as stage:
        folder = stage.folder
        assert stage.tools.exists()
    assert not folder.exists()

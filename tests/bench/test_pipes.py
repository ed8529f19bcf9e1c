"""The benchmark on stdio starts both servers and gets its echoes."""

import pytest
from bench import pipes
from bench.messages import NEW, OLD
from bench.stage import Stage
from bench.table import Book


def test_a_short_run_on_stdio_measures_both_eras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "CALLS", 10)
    monkeypatch.setattr(pipes, "WARM_UP", 1)
    monkeypatch.setattr(pipes.os, "sched_setaffinity", lambda *_: None)
    book = Book()
    with Stage(book, rounds=1) as stage:
        pipes.stdio(stage)
    assert [(asked, name) for asked, name, _ in book.figures] == [
        (f"stdio echo {era}", name) for era in (NEW, OLD) for name in (pipes.OURS, pipes.SDK)
    ]

"""The benchmark on stdio starts both servers and gets its echoes."""

from typing import Any

import pytest
from bench import pipes
from bench.messages import NEW, OLD
from bench.stage import Stage
from bench.table import Book


def test_a_short_run_on_stdio_measures_both_eras(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipes, "CALLS", 10)
    monkeypatch.setattr(pipes, "WARM_UP", 1)
    monkeypatch.setattr(pipes.os, "sched_setaffinity", lambda *_: None)
    noted: dict[str, Any] = {}
    book = Book()
    monkeypatch.setattr(book, "note", noted.__setitem__)
    with Stage(book, rounds=1) as stage:
        pipes.stdio(stage)
    assert {name: list(measured) for name, measured in noted.items()} == {
        f"stdio echo {era}": [pipes.OURS, pipes.SDK] for era in (NEW, OLD)
    }

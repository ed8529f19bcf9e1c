"""What is counted is stored every few seconds, so that a process that is killed loses little."""

import time
from collections.abc import Sequence

import pytest

from toolgate.gate.audit_records import Ended, Record
from toolgate.gate.principal import Kind, Principal
from toolgate.gate.summaries import MAX_PARTS, PART_SECONDS, SEVERAL, WINDOW, Summaries

MANY = MAX_PARTS + 20


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def refused(caller: int = 0, tool: str = "any") -> Ended:
    who = Principal(kind=Kind.USER, id=f"u{caller}")
    return Ended("r", "test", who, tool, False, "rule", "rate_limited", None, time.time_ns(), 0)


def counted(rows: Sequence[Record]) -> list[tuple[str, int]]:
    return [(row.tool_name, row.times) for row in rows]


def test_a_count_is_stored_every_few_seconds_and_nothing_twice(clock: list[float]) -> None:
    summaries = Summaries()
    assert [summaries.add(refused()) for _ in range(4)] == [True, False, False, False]
    assert summaries.due() == []
    clock[0] += PART_SECONDS
    assert counted(summaries.due()) == [("any", 3)]
    assert summaries.due() == []
    assert not summaries.add(refused(tool="other")), "the minute is not over"
    clock[0] += PART_SECONDS
    assert counted(summaries.due()) == [("other", 1)]
    summaries.add(refused())
    summaries.add(refused(tool="other"))
    assert counted(summaries.due(all_of_them=True)) == [(SEVERAL, 2)]


def test_a_minute_without_further_calls_leaves_no_further_row(clock: list[float]) -> None:
    summaries = Summaries()
    summaries.add(refused())
    clock[0] += PART_SECONDS
    assert summaries.due() == []
    clock[0] += WINDOW
    assert summaries.due() == []
    assert summaries.add(refused()), "a new minute"


def test_of_many_callers_the_largest_counts_are_stored_and_the_others_later(
    clock: list[float],
) -> None:
    summaries = Summaries()
    for caller in range(MANY):
        for _ in range(3 if caller >= MANY - MAX_PARTS else 2):
            summaries.add(refused(caller))
    clock[0] += PART_SECONDS
    assert counted(summaries.due()) == [("any", 2)] * MAX_PARTS
    assert summaries.due() == [], "not before some seconds have passed"
    clock[0] += WINDOW
    assert counted(summaries.due()) == [("any", 1)] * (MANY - MAX_PARTS)

"""Counting in this process agrees with the library that counts in Redis."""

import math
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from limits import RateLimitItemPerMinute
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from toolgate.gate.sliding_window import WindowCounter

START = 1_800_000_000.0  # the beginning of a minute


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [START]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


@given(
    most=st.integers(1, 5),
    steps=st.lists(st.tuples(st.integers(0, 700), st.sampled_from("ab")), max_size=60),
)
def test_what_is_let_through_is_what_the_library_lets_through(
    most: int, steps: list[tuple[int, str]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        now = [START]
        patch.setattr(time, "time", lambda: now[0])
        library = SlidingWindowCounterRateLimiter(MemoryStorage())
        ours, item = WindowCounter(), RateLimitItemPerMinute(most)
        for tenths, key in steps:
            now[0] += tenths / 10
            assert (ours.hit(key, most) is None) == library.hit(item, key)


@given(st.integers(1, 50), st.integers(0, 590), st.integers(0, 49))
def test_after_the_time_to_wait_a_call_is_let_through(most: int, tenths: int, used: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        now = [START]
        patch.setattr(time, "time", lambda: now[0])
        counter = WindowCounter()
        for _ in range(most):
            assert counter.hit("me", most) is None
        now[0] = START + 60 + tenths / 10
        for _ in range(used):
            counter.hit("me", most)
        wait = counter.hit("me", most)
        if wait is not None:
            assert 0 <= wait <= 60
            now[0] = math.nextafter(now[0] + wait, math.inf) + 1e-3
            assert counter.hit("me", most) is None


def test_callers_who_stay_away_are_forgotten(clock: list[float]) -> None:
    counter = WindowCounter()
    for number in range(10):
        counter.hit(number, 5)
    clock[0] += 180
    counter.hit("new", 5)
    assert kept(counter) == {"new"}


def test_keys_made_up_by_strangers_take_bounded_memory_and_undo_no_limit(
    clock: list[float],
) -> None:
    counter = WindowCounter(most_keys=10)
    for _ in range(5):
        assert counter.hit("me", 5) is None
    refused = [counter.hit(number, 5) for number in range(1000)]
    assert refused.count(None) == 9 + 5, "nine with a count of their own, then five in common"
    assert counter.hit("me", 5) is not None
    assert counter.test("me", 5) is not None
    assert len(kept(counter)) == 11
    clock[0] += 60
    for number in range(1000, 2000):
        counter.hit(number, 5)
    assert len(kept(counter)) <= 22
    assert counter.test("me", 5) is not None, "the minute before still counts"


def test_asking_counts_nothing(clock: list[float]) -> None:
    counter = WindowCounter(most_keys=10)
    for number in range(1000):
        assert counter.test(number, 1) is None
    assert not kept(counter)


def kept(counter: WindowCounter) -> set[object]:
    inside: Any = counter
    return {*inside._counts, *inside._before}

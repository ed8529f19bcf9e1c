"""Something that happens thousands of times fills no log, and is not hidden either."""

import logging

import pytest

from toolgate.throttled_log import ThrottledLog


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(clock: Clock, caplog: pytest.LogCaptureFixture) -> ThrottledLog:
    caplog.set_level(logging.INFO, "toolgate.test")
    return ThrottledLog(logging.getLogger("toolgate.test"), clock=clock)


def test_the_first_time_is_told_at_once_and_the_others_once_a_minute(
    log: ThrottledLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(1000):
        log.record("refused %d", number)
    assert caplog.messages == ["refused 0"]
    clock.now += 59.9
    log.record("refused %d", 1000)
    assert len(caplog.messages) == 1
    clock.now += 0.1
    log.record("refused %d", 1001)
    assert caplog.messages[1:] == ["refused 1001 (and 1000 more times)"]
    log.record("refused %d", 1002)
    assert len(caplog.messages) == 2


def test_what_happens_once_in_a_while_is_told_every_time(
    log: ThrottledLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        log.record("refused")
        clock.now += 60
    assert caplog.messages == ["refused"] * 3


def test_its_end_is_told_once_with_how_often_and_how_long(
    log: ThrottledLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    log.end("reachable again")
    assert caplog.messages == []
    assert not log.active
    for _ in range(7):
        log.record("unreachable")
    assert log.active
    clock.now += 12
    for _ in range(2):
        log.end("reachable again", level=logging.INFO)
    assert caplog.messages == ["unreachable", "reachable again (7 times in 12 s)"]
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]
    log.record("unreachable")
    assert caplog.messages[2:] == ["unreachable"]


def test_what_was_held_back_can_be_told_when_its_minute_is_over(
    log: ThrottledLog, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(4):
        log.record("refused %d", number)
    log.flush()
    assert len(caplog.messages) == 1
    clock.now += 60
    for _ in range(2):
        log.flush()
    assert caplog.messages == ["refused 0", "refused 3 (and 2 more times)"]


def test_only_what_is_told_carries_its_cause(
    log: ThrottledLog, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(5):
        log.record("unreachable", exc_info=OSError("no route"))
    (record,) = caplog.records
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], OSError)

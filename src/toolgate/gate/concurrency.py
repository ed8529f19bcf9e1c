"""What a handler needs only when it waits for something: a turn, and a time to be done by.

A handler that never waits is done before anybody else runs, so it can neither be too many nor be
stopped. Most are such; giving each a turn and a deadline would cost as much as all other checks.
"""

from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

from toolgate.gate.deadlines import Deadline, Deadlines
from toolgate.gate.turns import Turns

T = TypeVar("T")


@coroutine
def bounded(
    turns: Turns, deadlines: Deadlines, work: Coroutine[Any, Any, T]
) -> Generator[Any, Any, T]:
    """Run a coroutine; where it waits, in its turn and with a deadline."""
    if not turns.free:
        return (yield from _in_turn(turns, deadlines, work))
    try:
        awaited = work.send(None)
    except StopIteration as done:
        return done.value
    turns.free -= 1  # still free: nobody else ran
    try:
        with Deadline(deadlines):
            return (yield from _resume(work, awaited))
    finally:
        turns.release()


def _in_turn(
    turns: Turns, deadlines: Deadlines, work: Coroutine[Any, Any, T]
) -> Generator[Any, Any, T]:
    """Wait for a turn, within the same time as for the work."""
    try:
        with Deadline(deadlines):
            yield from turns.wait().__await__()
            try:
                return (yield from work.__await__())
            finally:
                turns.release()
    finally:
        work.close()


def _resume(work: Coroutine[Any, Any, T], awaited: Any) -> Generator[Any, Any, T]:
    """The rest of a coroutine that was begun and waits for something."""
    while True:
        try:
            yield awaited
        except BaseException as problem:
            try:
                awaited = work.throw(problem)
            except StopIteration as done:
                return done.value
        else:
            return (yield from work.__await__())

"""What a handler needs only when it waits for something: a turn, and a time to be done by.

A handler that never waits is done before anybody else runs, so it can neither be too many nor be
stopped. Most are such; giving each a turn and a deadline would cost as much as all other checks.

A handler that is over its time is cancelled. One that goes on nevertheless (it takes the
cancellation for an error, and tries again) is ended: nothing runs it any longer, so that neither
its caller nor its turn nor a transaction waits for it.
"""

import asyncio
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

from toolgate.gate.deadlines import OVER, Deadline, Deadlines
from toolgate.gate.turns import Turns

T = TypeVar("T")

CLEANUP_SECONDS = 5.0
"""How long a handler that was cancelled may go on waiting for something, to clean up; a database
that is silent takes some seconds to let go."""
MAX_CLOSES = 3
"""How often a handler is told to end, where it waits for something each time."""
NOT_BEGUN: Any = object()


@coroutine
def run_bounded(
    turns: Turns,
    deadlines: Deadlines,
    caller: str,
    work: Coroutine[Any, Any, T],
    tool: str | None = None,
) -> Generator[Any, Any, T]:
    """Run a caller's coroutine; where it waits, in its turn and with a deadline.

    It is a tool's handler, or something that runs one with `ended_in_time`.
    """
    if not turns.free:
        return (yield from _in_turn(turns, deadlines, caller, work, tool))
    try:
        awaited = work.send(None)
    except StopIteration as done:
        return done.value
    turns.free -= 1  # still free: nobody else ran
    try:
        with Deadline(deadlines):
            if tool is None:
                return (yield from _resume(work, awaited))
            return (yield from _run_handler(work, deadlines, tool, awaited))
    finally:
        turns.release(caller)


def _in_turn(
    turns: Turns,
    deadlines: Deadlines,
    caller: str,
    work: Coroutine[Any, Any, T],
    tool: str | None,
) -> Generator[Any, Any, T]:
    """Wait for a turn, within the same time as for the work."""
    try:
        with Deadline(deadlines):
            yield from turns.wait(caller).__await__()
            try:
                if tool is None:
                    return (yield from work.__await__())
                return (yield from _run_handler(work, deadlines, tool))
            finally:
                turns.release(caller)
    finally:
        _close(work)


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


def _run_handler(
    work: Coroutine[Any, Any, T], deadlines: Deadlines, tool: str, awaited: Any = NOT_BEGUN
) -> Generator[Any, Any, T]:
    """Run a handler, or the rest of it; end it where it goes on after its time."""
    try:
        if awaited is NOT_BEGUN:
            awaited = work.send(None)
        while True:
            try:
                yield awaited
            except asyncio.CancelledError as problem:
                awaited = work.throw(problem)
                if problem.args == (OVER,):
                    return (yield from _clean_up(work, awaited, problem, deadlines, tool))
            except BaseException as problem:
                awaited = work.throw(problem)
            else:
                awaited = work.send(None)
    except StopIteration as done:
        return done.value


ended_in_time = coroutine(_run_handler)


def _clean_up(
    work: Coroutine[Any, Any, T],
    awaited: Any,
    cancelled: asyncio.CancelledError,
    deadlines: Deadlines,
    tool: str,
) -> Generator[Any, Any, T]:
    """The rest of a handler that was cancelled and waits again: for a moment, then it is ended."""
    task = asyncio.current_task()
    assert task is not None
    late: list[bool] = []

    def wake() -> None:
        late.append(True)
        task.cancel()

    timer = task.get_loop().call_later(CLEANUP_SECONDS, wake)
    try:
        while True:
            problem = None
            try:
                yield awaited
            except BaseException as thrown:
                problem = thrown
            if late:
                task.uncancel()
                _close(work)
                deadlines.note_ignored(tool)
                raise cancelled
            awaited = work.send(None) if problem is None else work.throw(problem)
    finally:
        timer.cancel()


def _close(work: Coroutine[Any, Any, Any]) -> None:
    """End a coroutine where it is, even if it will not: what nobody runs does nothing more."""
    for _ in range(MAX_CLOSES):
        try:
            return work.close()
        except RuntimeError:  # it waits for something, to clean up or to try again
            continue
        except BaseException:  # its own last words
            return None
    return _keep(work)


def _keep(work: Coroutine[Any, Any, Any]) -> None:
    """Never free a coroutine that takes every exception for a reason to try again.

    Python would run it once more to free it, in any thread: without an event loop there, whatever
    it waits for fails at once, and it would try again for ever.
    """
    import ctypes  # noqa: PLC0415 - for such handlers only

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(work))

"""Runs: started with a commit, done by one worker at a time, resumed where they were."""

import asyncio
from typing import Any

import pytest
from sqlalchemy import func, select
from tests.statements import noted_statements
from tests.workflows.conftest import LEASE, OpenShop

from toolgate.db.changes import Change
from toolgate.db.tables import audit, changes
from toolgate.db.workflow_tables import workflow_runs
from toolgate.gate.errors import Unavailable
from toolgate.workflows.declarations import (
    Run,
    RunCancelled,
    RunFailed,
    RunLost,
    RunStatus,
    Workflow,
)
from toolgate.workflows.runs import RunConflict, RunNotFound, UnknownWorkflow

pytestmark = pytest.mark.anyio


def workflow(run: Any, name: str = "work", **options: Any) -> Workflow[Any]:
    return Workflow(name=name, summary="Works.", run=run, **options)


async def answer(run: Run[str]) -> dict[str, Any]:
    return {"got": run.arguments, "world": run.world, "attempt": run.attempt}


async def test_a_run_is_done_and_keeps_its_result(open_shop: OpenShop) -> None:
    shop = open_shop(workflow(answer))
    id = await shop.start("work", arguments={"of": 3})
    assert (await shop.record(id)).status is RunStatus.QUEUED
    await shop.done_by(shop.worker())
    record = await shop.record(id)
    assert record.status is RunStatus.SUCCEEDED
    assert record.result == {"got": {"of": 3}, "world": "the world", "attempt": 1}
    assert record.ended
    assert record.due_at is None


async def test_a_run_exists_only_if_the_transaction_commits(open_shop: OpenShop) -> None:
    shop = open_shop(workflow(answer, alone=False))
    workflows = shop.runs().of("pack")
    async with shop.database.transaction() as tx:
        tx.call = "c" * 32
        kept = await workflows.start(tx, "work")
    async with shop.database.transaction() as tx:
        lost = await workflows.start(tx, "work", key="k")
        tx.abandon()
    assert (await shop.record(kept)).call == "c" * 32
    with pytest.raises(RunNotFound):
        await shop.record(lost)


async def test_a_commit_wakes_the_worker_of_the_process_and_a_rollback_does_not(
    open_shop: OpenShop,
) -> None:
    runs = open_shop(workflow(answer)).runs()
    woken: list[bool] = []
    runs.wake.set = lambda: woken.append(True)  # type: ignore[method-assign]
    async with runs.database.transaction() as tx:
        await runs.of("pack").start(tx, "work")
        tx.abandon()
    assert not woken
    await runs.of("pack").start_now("work")
    assert woken == [True]


async def test_an_unknown_workflow_is_refused(open_shop: OpenShop) -> None:
    with pytest.raises(UnknownWorkflow, match="pack/nothing"):
        await open_shop(workflow(answer)).start("nothing")


async def test_the_same_key_is_the_same_run_even_after_its_end(open_shop: OpenShop) -> None:
    shop = open_shop(workflow(answer, alone=False))
    first = await shop.start("work", key="order 7")
    await shop.done_by(shop.worker())
    assert await shop.start("work", key="order 7") == first
    assert await shop.start("work", key="order 8") != first


async def test_one_that_is_alone_is_joined_until_it_ends(open_shop: OpenShop) -> None:
    shop = open_shop(workflow(answer))
    first = await shop.start("work")
    assert await shop.start("work", key="another") == first
    await shop.done_by(shop.worker())
    assert await shop.start("work") != first


async def test_a_run_that_ended_without_a_key_is_not_joined(open_shop: OpenShop) -> None:
    shop = open_shop(workflow(answer))
    ended = await shop.start("work")
    await shop.done_by(shop.worker())
    ids = await asyncio.gather(*(shop.start("work") for _ in range(4)))
    assert len(set(ids)) == 1
    assert ended not in ids
    assert await shop.start("work", key="another") == ids[0]


async def test_only_what_is_alike_is_joined(open_shop: OpenShop) -> None:
    shop = open_shop(workflow(answer, alike="of"))
    ended = await shop.start("work", arguments={"of": 1})
    await shop.done_by(shop.worker())
    one, again, two = [await shop.start("work", arguments={"of": of}) for of in (1, 1, 2)]
    assert again == one
    assert len({ended, one, two}) == 3
    without = [await shop.start("work") for _ in range(2)]
    assert len(set(without)) == 2


async def test_a_retry_does_not_run_beside_one_that_is_alike(open_shop: OpenShop) -> None:
    shop = open_shop(workflow(answer, alike="of"))
    first = await shop.start("work", arguments={"of": 1})
    await shop.cancel(first)
    await shop.start("work", arguments={"of": 2})
    equal = await shop.start("work", arguments={"of": 1})
    with pytest.raises(RunConflict, match="Another run of this workflow is under way"):
        await shop.retry(first)
    await shop.cancel(equal)
    await shop.retry(first)
    assert await shop.start("work", arguments={"of": 1}) == first


async def test_a_pack_has_no_runs_of_others(open_shop: OpenShop) -> None:
    shop = open_shop(workflow(answer))
    id = await shop.start("work")
    other = shop.runs().of("other")
    assert [one.id for one in await shop.runs().of("pack").list()] == [id]
    assert not await other.list()
    for ask in (other.find, other.wait):
        with pytest.raises(RunNotFound):
            await ask(id)


async def test_many_starts_at_once_are_one_run(open_shop: OpenShop) -> None:
    shop = open_shop(workflow(answer))
    ids = await asyncio.gather(*(shop.start("work") for _ in range(20)))
    assert len(set(ids)) == 1


async def test_each_run_is_done_once_by_many_workers(open_shop: OpenShop) -> None:
    done: list[str] = []

    async def note(run: Run[str]) -> dict[str, Any]:
        done.append(run.id)
        await asyncio.sleep(0)
        return {}

    shop = open_shop(workflow(note, alone=False))
    ids = [await shop.start("work") for _ in range(30)]
    workers = [shop.worker(concurrency=3) for _ in range(4)]
    while not all([(await shop.record(id)).ended for id in ids]):
        await asyncio.gather(*(worker.look() for worker in workers))
    assert sorted(done) == sorted(ids)


async def test_no_more_than_so_many_at_a_time(open_shop: OpenShop) -> None:
    release = asyncio.Event()

    async def wait(run: Run[str]) -> dict[str, Any]:
        await release.wait()
        return {}

    shop = open_shop(workflow(wait, alone=False))
    ids = [await shop.start("work") for _ in range(5)]
    worker = shop.worker(concurrency=2)
    await worker.look()
    status = [(await shop.record(id)).status for id in ids]
    assert status.count(RunStatus.RUNNING) == 2
    release.set()
    await worker.finished()


class Counting:
    """Counts to ten, with a checkpoint each; stops dead at a number, once."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.hang_at: int | None = None
        self.reached = asyncio.Event()

    async def run(self, run: Run[str]) -> dict[str, Any]:
        for number in range(run.state.get("next", 0), 10):
            self.seen.append(number)
            if number == self.hang_at:
                self.hang_at = None
                self.reached.set()
                await asyncio.Event().wait()
            await run.checkpoint({"next": number + 1}, done=number + 1, total=10, message="on")
        return {"counted": len(self.seen)}


async def test_another_worker_goes_on_from_the_last_checkpoint(open_shop: OpenShop) -> None:
    counting = Counting()
    counting.hang_at = 6
    shop = open_shop(workflow(counting.run))
    id = await shop.start("work")
    dead, other = shop.worker(), shop.worker()
    await dead.look()
    await counting.reached.wait()
    await shop.done_by(other)
    assert counting.seen == list(range(7)), "its lease has not ended"
    shop.clock.forward(seconds=LEASE.total_seconds() + 1)
    await shop.done_by(other)
    record = await shop.record(id)
    assert record.status is RunStatus.SUCCEEDED
    assert counting.seen == [*range(7), 6, 7, 8, 9], "from the last checkpoint"
    assert record.attempts == 2
    assert (record.done, record.total, record.message) == (10, 10, "on")


async def test_a_lease_is_renewed_while_the_run_works(open_shop: OpenShop) -> None:
    counting = Counting()
    counting.hang_at = 0
    shop = open_shop(workflow(counting.run))
    await shop.start("work")
    holder, other = shop.worker(), shop.worker()
    await holder.look()
    await counting.reached.wait()
    for _ in range(6):
        shop.clock.forward(seconds=LEASE.total_seconds() / 2)
        await holder.look()
        await shop.done_by(other)
    assert counting.seen == [0]


async def test_who_lost_the_lease_stores_nothing_and_is_stopped(open_shop: OpenShop) -> None:
    taken_over, told = asyncio.Event(), list[Exception]()

    async def run(run: Run[str]) -> dict[str, Any]:
        if run.attempt == 1:
            await taken_over.wait()
            try:
                await run.checkpoint({"by": "the first"})
            except RunLost as lost:
                told.append(lost)
                raise
        await run.checkpoint({"by": "the second"})
        return {"by": "the second"}

    shop = open_shop(workflow(run))
    id = await shop.start("work")
    first, second = shop.worker(), shop.worker()
    await first.look()
    shop.clock.forward(seconds=LEASE.total_seconds() + 1)
    await shop.done_by(second)
    taken_over.set()
    await first.finished()
    assert len(told) == 1
    record = await shop.record(id)
    assert record.result == {"by": "the second"}
    state = select(workflow_runs.c.state)
    assert await shop.ask(lambda c: c.scalar(state)) == {"by": "the second"}


async def test_a_renewal_that_finds_the_lease_lost_stops_the_run(open_shop: OpenShop) -> None:
    counting = Counting()
    counting.hang_at = 0
    shop = open_shop(workflow(counting.run))
    await shop.start("work")
    first, second = shop.worker(), shop.worker()
    await first.look()
    await counting.reached.wait()
    shop.clock.forward(seconds=LEASE.total_seconds() + 1)
    await shop.done_by(second)
    await first.look()
    await asyncio.wait_for(first.finished(), 5)


async def test_a_checkpoint_in_a_transaction_is_stored_with_it_or_not_at_all(
    open_shop: OpenShop,
) -> None:
    async def run(run: Run[str]) -> dict[str, Any]:
        async with run.transaction() as tx:
            await run.checkpoint_in(tx, {"kept": 1}, done=1)
        async with run.transaction() as tx:
            await run.checkpoint_in(tx, {"kept": 2}, done=2)
            tx.abandon()
        return {}

    shop = open_shop(workflow(run))
    id = await shop.start("work")
    await shop.done_by(shop.worker())
    state = select(workflow_runs.c.state)
    assert await shop.ask(lambda c: c.scalar(state)) == {"kept": 1}
    assert (await shop.record(id)).done == 1


async def test_a_checkpoint_is_one_statement(open_shop: OpenShop) -> None:
    seen: list[int] = []

    async def run(run: Run[str]) -> dict[str, Any]:
        with noted_statements() as statements:
            await run.checkpoint({"n": 1}, done=1)
        seen.append(len([one for one in statements if "workflow_runs" in one]))
        return {}

    shop = open_shop(workflow(run))
    await shop.start("work")
    await shop.done_by(shop.worker())
    assert seen == [1]


async def test_a_run_that_waits_is_cancelled_at_once(open_shop: OpenShop) -> None:
    shop = open_shop(workflow(answer))
    id = await shop.start("work")
    await shop.cancel(id)
    assert (await shop.record(id)).status is RunStatus.CANCELLED
    await shop.done_by(shop.worker())
    assert (await shop.record(id)).result is None
    assert await shop.start("work") != id, "it is no more in the way of another one"


async def test_a_run_that_works_is_cancelled_at_its_next_checkpoint(open_shop: OpenShop) -> None:
    go_on, told = asyncio.Event(), list[Exception]()

    async def run(run: Run[str]) -> dict[str, Any]:
        await go_on.wait()
        try:
            await run.checkpoint({"stored": True})
        except RunCancelled as cancelled:
            told.append(cancelled)
            raise
        return {}

    shop = open_shop(workflow(run))
    id = await shop.start("work")
    worker = shop.worker()
    await worker.look()
    await shop.cancel(id)
    record = await shop.record(id)
    assert (record.status, record.cancelling) == (RunStatus.RUNNING, True)
    go_on.set()
    await worker.finished()
    assert (await shop.record(id)).status is RunStatus.CANCELLED
    assert told
    state = select(workflow_runs.c.state)
    assert await shop.ask(lambda c: c.scalar(state)) == {"stored": True}


async def test_a_cancelled_run_whose_worker_died_is_not_taken_up_again(open_shop: OpenShop) -> None:
    counting = Counting()
    counting.hang_at = 3
    shop = open_shop(workflow(counting.run))
    id = await shop.start("work")
    await shop.worker().look()
    await counting.reached.wait()
    await shop.cancel(id)
    shop.clock.forward(seconds=LEASE.total_seconds() + 1)
    await shop.done_by(shop.worker())
    assert (await shop.record(id)).status is RunStatus.CANCELLED
    assert counting.seen == [0, 1, 2, 3]


async def test_what_has_ended_cannot_be_cancelled_nor_what_succeeded_retried(
    open_shop: OpenShop,
) -> None:
    shop = open_shop(workflow(answer))
    id = await shop.start("work")
    await shop.done_by(shop.worker())
    with pytest.raises(RunConflict, match="succeeded"):
        await shop.cancel(id)
    with pytest.raises(RunConflict, match="succeeded"):
        await shop.retry(id)
    with pytest.raises(RunNotFound):
        await shop.retry("nothing")


class Failing:
    def __init__(self, times: int, error: Exception) -> None:
        self.left = times
        self.error = error
        self.states: list[dict[str, Any]] = []

    async def run(self, run: Run[str]) -> dict[str, Any]:
        self.states.append(run.state)
        await run.checkpoint({"attempt": run.attempt})
        if self.left:
            self.left -= 1
            raise self.error
        return {"attempts": run.attempt}


async def test_a_failure_is_tried_again_later_and_later(open_shop: OpenShop) -> None:
    failing = Failing(2, ValueError("secret-123"))
    shop = open_shop(workflow(failing.run))
    id = await shop.start("work")
    worker = shop.worker()
    for seconds in (10, 20):
        await shop.done_by(worker)
        record = await shop.record(id)
        assert record.status is RunStatus.QUEUED
        assert record.error == "It failed with ValueError; the server's log has the details."
        shop.clock.forward(seconds=seconds - 1)
        await shop.done_by(worker)
        assert (await shop.record(id)).status is RunStatus.QUEUED
        shop.clock.forward(seconds=1)
    await shop.done_by(worker)
    record = await shop.record(id)
    assert (record.status, record.error) == (RunStatus.SUCCEEDED, None)
    assert record.result == {"attempts": 3}
    assert failing.states == [{}, {"attempt": 1}, {"attempt": 2}]


async def test_after_its_last_attempt_it_has_failed_until_somebody_retries(
    open_shop: OpenShop,
) -> None:
    failing = Failing(2, Unavailable("The shop is closed. Try again."))
    shop = open_shop(workflow(failing.run, attempts=2))
    id = await shop.start("work")
    worker = shop.worker()
    for _ in range(3):
        await shop.done_by(worker)
        shop.clock.forward(hours=1)
    record = await shop.record(id)
    assert record.status is RunStatus.FAILED
    assert record.error == "The shop is closed. Try again.", "words of ours are told"
    await shop.retry(id)
    await shop.done_by(worker)
    assert (await shop.record(id)).status is RunStatus.SUCCEEDED
    assert failing.states[-1] == {"attempt": 2}, "from its last checkpoint"


async def test_a_retry_does_not_run_beside_another_one_that_is_alone(open_shop: OpenShop) -> None:
    shop = open_shop(workflow(answer))
    first = await shop.start("work")
    await shop.cancel(first)
    await shop.start("work")
    with pytest.raises(RunConflict, match="Another run"):
        await shop.retry(first)


async def test_what_cannot_succeed_is_not_tried_again(open_shop: OpenShop) -> None:
    failing = Failing(9, RunFailed("There is no such list."))
    shop = open_shop(workflow(failing.run))
    id = await shop.start("work")
    await shop.done_by(shop.worker())
    record = await shop.record(id)
    assert (record.status, record.error) == (RunStatus.FAILED, "There is no such list.")


async def test_a_result_that_is_no_json_fails_the_run_with_one_sentence(
    open_shop: OpenShop,
) -> None:
    async def run(run: Run[str]) -> dict[str, Any]:
        return {"it": object()}

    shop = open_shop(workflow(run))
    id = await shop.start("work")
    await shop.done_by(shop.worker())
    record = await shop.record(id)
    assert record.status is RunStatus.FAILED
    assert record.error is not None
    assert record.error.startswith("It failed with ")


async def test_a_run_that_kills_its_server_is_given_up(open_shop: OpenShop) -> None:
    async def hang(run: Run[str]) -> dict[str, Any]:
        await asyncio.Event().wait()
        return {}

    shop = open_shop(workflow(hang, attempts=2))
    id = await shop.start("work")
    for _ in range(3):
        worker = shop.worker()
        await worker.look()
        shop.clock.forward(seconds=LEASE.total_seconds() + 1)
    await worker.finished()
    record = await shop.record(id)
    assert record.status is RunStatus.FAILED
    assert record.error == "The last of 2 attempts never ended: its server stopped."


async def test_what_failed_before_the_server_stopped_is_told_as_well(open_shop: OpenShop) -> None:
    async def fail_then_hang(run: Run[str]) -> dict[str, Any]:
        if run.attempt == 1:
            raise Unavailable("The shop is closed.")
        await asyncio.Event().wait()
        return {}

    shop = open_shop(workflow(fail_then_hang, attempts=2))
    id = await shop.start("work")
    await shop.done_by(shop.worker())
    shop.clock.forward(minutes=5)
    await shop.worker().look()
    shop.clock.forward(minutes=5)
    await shop.done_by(shop.worker())
    assert (await shop.record(id)).error == (
        "The last of 2 attempts never ended: its server stopped. "
        "An attempt before had failed: The shop is closed."
    )


async def test_a_clean_stop_ends_at_a_checkpoint_and_counts_as_no_attempt(
    open_shop: OpenShop,
) -> None:
    stopping = asyncio.Event()
    seen: list[int] = []

    async def run(run: Run[str]) -> dict[str, Any]:
        for number in range(run.state.get("next", 0), 4):
            seen.append(number)
            if number == 1:
                stopping.set()
                await asyncio.sleep(0.05)
            await run.checkpoint({"next": number + 1})
        return {}

    shop = open_shop(workflow(run))
    id = await shop.start("work")
    worker = shop.worker()
    await worker.look()
    await stopping.wait()
    await worker.close()
    record = await shop.record(id)
    assert (record.status, record.attempts) == (RunStatus.QUEUED, 0)
    assert seen == [0, 1]
    await shop.done_by(shop.worker())
    assert seen == [0, 1, 2, 3], "nothing twice, and without waiting for the lease"


async def test_wait_tells_progress_from_wherever_the_run_is(open_shop: OpenShop) -> None:
    counting = Counting()
    shop = open_shop(workflow(counting.run))
    id = await shop.start("work")
    told: list[tuple[float, float | None, str | None]] = []

    async def report(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total, message))

    waiting = asyncio.create_task(shop.runs().wait(id, report))
    await shop.done_by(shop.worker())
    assert (await waiting).status is RunStatus.SUCCEEDED
    assert told[-1] == (10, 10, "on")
    assert [done for done, *_ in told] == sorted({done for done, *_ in told})


async def test_wait_gives_up_after_so_many_seconds(open_shop: OpenShop) -> None:
    shop = open_shop(workflow(answer))
    id = await shop.start("work")
    record = await shop.runs().wait(id, seconds=2)
    assert record.status is RunStatus.QUEUED


async def test_a_run_has_an_audit_row_when_it_begins_and_one_at_its_end(
    open_shop: OpenShop,
) -> None:
    shop = open_shop(workflow(Failing(1, ValueError()).run), workflow(answer, "other"))
    id = await shop.start("work")
    worker = shop.worker()
    await shop.done_by(worker)
    shop.clock.forward(minutes=1)
    await shop.done_by(worker)
    rows = await shop.ask(lambda c: c.execute(select(audit).order_by(audit.c.seq)).all())
    told = [(row.tool_name, row.subject_id, row.request_id, row.status) for row in rows]
    assert told == [
        ("workflows.begin", "workflow:pack/work", id, "success"),
        ("workflows.end", "workflow:pack/work", id, "success"),
    ]
    assert rows[0].id == id


async def test_what_a_run_changes_is_logged_as_the_runs_own(open_shop: OpenShop) -> None:
    async def run(run: Run[str]) -> dict[str, Any]:
        change = Change("documents", "pack", "a/b", None, {"x": 1}, "2026-01-01T00:00:00.000000Z")
        async with run.transaction() as tx:
            await tx.run(lambda connection: tx.changed(connection, [change]))
        return {}

    shop = open_shop(workflow(run))
    id = await shop.start("work")
    await shop.done_by(shop.worker())
    assert await shop.ask(lambda c: c.scalar(select(changes.c.call))) == id


async def test_runs_are_kept_for_so_many_days_after_their_end(open_shop: OpenShop) -> None:
    shop = open_shop(workflow(answer, alone=False))
    worker = shop.worker(keep_days=7)
    for _ in range(3):
        await shop.start("work")
    await shop.done_by(worker)
    shop.clock.forward(days=6)
    waiting = await shop.start("work")
    assert await worker.delete_old() == 0
    shop.clock.forward(days=2)
    assert await worker.delete_old() == 3
    count = select(func.count()).select_from(workflow_runs)
    assert await shop.ask(lambda c: c.scalar(count)) == 1
    assert (await shop.record(waiting)).status is RunStatus.QUEUED


async def test_lists_are_newest_first_and_can_be_narrowed(open_shop: OpenShop) -> None:
    shop = open_shop(workflow(answer, alone=False), workflow(answer, "other"))
    ids: list[str] = []
    for name in ("work", "other", "work"):
        ids.append(await shop.start(name))
        shop.clock.forward(seconds=1)
    runs = shop.runs()
    assert [one.id for one in await runs.list()] == ids[::-1]
    assert [one.id for one in await runs.list(limit=2)] == ids[:0:-1]
    assert [one.id for one in await runs.list(workflow="pack/other")] == [ids[1]]
    await shop.cancel(ids[0])
    assert [one.id for one in await runs.list(status=RunStatus.CANCELLED)] == [ids[0]]


async def test_what_is_switched_off_is_not_taken_and_says_why(open_shop: OpenShop) -> None:
    shop = open_shop(workflow(answer), workflow(answer, "other"))
    shop.off["pack/work"] = "It is off."
    waiting, going = await shop.start("work"), await shop.start("other")
    worker = shop.worker()
    await shop.done_by(worker)
    record = await shop.record(waiting)
    assert (record.status, record.attempts, record.started_at) == (RunStatus.QUEUED, 0, None)
    assert (await shop.record(going)).status is RunStatus.SUCCEEDED
    assert (await shop.runs().wait(waiting)).error == "It is off."
    shop.off.clear()
    await shop.done_by(worker)
    assert (await shop.record(waiting)).status is RunStatus.SUCCEEDED


async def test_what_is_switched_off_meanwhile_stops_at_its_next_checkpoint(
    open_shop: OpenShop,
) -> None:
    counting = Counting()

    async def run(run: Run[str]) -> dict[str, Any]:
        if not run.state:
            shop.off["pack/work"] = "It is off."
        return await counting.run(run)

    shop = open_shop(workflow(run))
    id = await shop.start("work")
    worker = shop.worker()
    await shop.done_by(worker)
    await shop.done_by(worker)
    record = await shop.record(id)
    assert (record.status, record.attempts, counting.seen) == (RunStatus.QUEUED, 0, [0])
    shop.off.clear()
    await shop.done_by(worker)
    assert counting.seen == [*range(10)]

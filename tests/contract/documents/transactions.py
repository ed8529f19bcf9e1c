"""Work that reads, decides and writes, as one."""

import anyio
import pytest
from tests.contract.documents.room import Room, case

from toolgate.ports.documents import (
    Create,
    Delete,
    DocumentExists,
    DocumentNotFound,
    DocumentTransaction,
    Filter,
    Operator,
    Query,
    Set,
    Update,
)
from toolgate.ports.transforms import Increment

TASKS = 10


class Broken(Exception):
    """What a work raises that goes wrong."""


@case
async def work_reads_and_writes(room: Room) -> None:
    here = room.collection
    await room.add_each("n", {"a": 1, "b": 2})

    async def work(transaction: DocumentTransaction) -> int:
        one = await transaction.get(here, "a")
        assert one is not None
        many = await transaction.get_many([(here, "b"), (here, "absent")])
        found = await transaction.query(Query(here, [Filter("n", Operator.GREATER, 1)]))
        assert (list(many), [one.id for one in found]) == ([{"n": 2}, None], ["b"])
        transaction.write(Update(here, "a", {"n": one["n"] + 10}), Delete(here, "b"))
        transaction.write(Create(here, "c", {"n": Increment(3)}))
        return one["n"]

    assert await room.transact(work) == 1
    assert {one.id: one.fields for one in await room.query()} == {"a": {"n": 11}, "c": {"n": 3}}


@case
async def work_reads_what_was_there_before_its_writes(room: Room) -> None:
    here = room.collection
    await room.add("a", {"n": 1})

    async def work(transaction: DocumentTransaction) -> None:
        transaction.write(Update(here, "a", {"n": 2}), Create(here, "b", {"n": 2}))
        assert await transaction.get(here, "a") == {"n": 1}
        assert await transaction.get(here, "b") is None
        assert [one.fields for one in await transaction.query(Query(here))] == [{"n": 1}]
        transaction.write(Update(here, "a", {"more": True}))

    await room.transact(work)
    assert await room.get("a") == {"n": 2, "more": True}
    assert await room.get("b") == {"n": 2}


@case
async def work_that_raises_stores_nothing(room: Room) -> None:
    here = room.collection
    await room.add("a", {"n": 1})

    async def work(transaction: DocumentTransaction) -> None:
        await transaction.get(here, "a")
        transaction.write(Delete(here, "a"), Create(here, "b", {}))
        raise Broken

    with pytest.raises(Broken):
        await room.transact(work)
    assert await room.get("a") == {"n": 1}
    assert await room.ids() == "a"


@case
async def work_whose_writes_are_refused_stores_nothing(room: Room) -> None:
    here = room.collection
    await room.add("a", {"n": 1})

    async def create(transaction: DocumentTransaction) -> None:
        transaction.write(Create(here, "b", {}), Create(here, "a", {}))

    async def update(transaction: DocumentTransaction) -> None:
        await transaction.get(here, "absent")
        transaction.write(Create(here, "b", {}), Update(here, "absent", {"n": 1}))

    with pytest.raises(DocumentExists):
        await room.transact(create)
    with pytest.raises(DocumentNotFound):
        await room.transact(update)
    assert await room.ids() == "a"


@case
async def work_may_write_nothing(room: Room) -> None:
    await room.add("a", {"n": 1})

    async def work(transaction: DocumentTransaction) -> object:
        return await transaction.get(room.collection, "a")

    assert await room.transact(work) == {"n": 1}


@case
async def an_abandoned_transaction_undoes_work_where_writes_join_it(room: Room) -> None:
    async def work(transaction: DocumentTransaction) -> None:
        transaction.write(Create(room.collection, "one", {"n": 1}))

    async with room.transaction() as tx:
        await room.store.transact(tx, work)
        tx.abandon()
    assert await room.get("one") == (None if room.store.joins_transaction else {"n": 1})


@case
async def of_concurrent_works_none_is_lost(room: Room) -> None:
    here = room.collection
    await room.add("count", {"n": 0})

    async def work(transaction: DocumentTransaction) -> None:
        found = await transaction.get(here, "count")
        assert found is not None
        transaction.write(Set(here, "count", {"n": found["n"] + 1}))

    async with anyio.create_task_group() as tasks:
        for _ in range(TASKS):
            tasks.start_soon(room.transact, work)
    assert await room.get("count") == {"n": TASKS}


@case
async def concurrent_works_see_documents_that_were_not_there(room: Room) -> None:
    here = room.collection

    async def work(transaction: DocumentTransaction) -> None:
        found = await transaction.get(here, "count")
        number = found["n"] if found else 0
        transaction.write(Set(here, "count", {"n": number + 1}))

    async with anyio.create_task_group() as tasks:
        for _ in range(TASKS):
            tasks.start_soon(room.transact, work)
    assert await room.get("count") == {"n": TASKS}


@case
async def concurrent_works_do_not_change_what_others_queried(room: Room) -> None:
    here = room.collection

    async def work(transaction: DocumentTransaction) -> None:
        found = await transaction.query(Query(here, [Filter("n", Operator.GREATER_OR_EQUAL, 0)]))
        transaction.write(Create(here, f"d{len(found)}", {"n": len(found)}))

    async with anyio.create_task_group() as tasks:
        for _ in range(TASKS):
            tasks.start_soon(room.transact, work)
    assert await room.ids() == " ".join(f"d{number}" for number in range(TASKS))


@case
async def concurrent_increments_all_count(room: Room) -> None:
    await room.add("count", {"n": 0})
    more = Update(room.collection, "count", {"n": Increment(1)})
    async with anyio.create_task_group() as tasks:
        for _ in range(TASKS):
            tasks.start_soon(room.write, more)
    assert await room.get("count") == {"n": TASKS}

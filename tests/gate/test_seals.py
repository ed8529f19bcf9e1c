"""A chain over the audit: what was changed afterwards is found and named."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest
from sqlalchemy import Connection, create_engine, select, text, update
from tests.databases import STARTS_A_SERVER
from tests.patience import PATIENT

from toolgate.db.engine import Database
from toolgate.db.tables import audit, audit_head, audit_seals
from toolgate.db.upgrades import upgrade
from toolgate.gate import seals
from toolgate.gate.audit import AuditLog
from toolgate.gate.audit_records import Record, new_id, timestamp
from toolgate.gate.seals import BEGINNING, ENTRY, Sealer, digest, seal_hash
from toolgate.gate.verification import Verdict, verify

pytestmark = pytest.mark.anyio


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = Database(database_url)
    await upgrade(opened)
    yield opened
    await opened.close()


def a_record(number: int = 0, **different: Any) -> Record:
    plain = Record(
        id=new_id(),
        created_at=timestamp(),
        request_id=f"r{number}",
        transport="test",
        subject_type="user",
        subject_id=f"u{number}",
        user_id=None,
        agent_type=None,
        role_names="user",
        group_ids="",
        project_id=None,
        task_id=None,
        run_id=None,
        job_id=None,
        client_id=None,
        grant_id=None,
        tool_name="help.get",
        decision="allow",
        rule="user-tools",
        status="success",
        error_type=None,
        duration_ms=number,
    )
    return plain._replace(**different)


async def add_rows(database: Database, *numbers: int) -> None:
    """Rows as writes leave them: without a seal."""
    log = AuditLog(database)
    for number in numbers:
        await log.store_now(a_record(number))


async def flush_rows(database: Database, *numbers: int) -> None:
    """Rows as reads leave them: in a batch."""
    records = [a_record(number) for number in numbers]
    await database.write(lambda connection: seals.store_sealed(connection, records))


@pytest.fixture
async def chain(database: Database) -> Database:
    """Rows 1 to 9 under seals 1 to 3."""
    for first in (1, 4, 7):
        await add_rows(database, first, first + 1, first + 2)
        assert await Sealer(database).seal() == 3
    return database


UNCHECKED = {
    "sqlite": ("PRAGMA foreign_keys = OFF", "PRAGMA foreign_keys = ON"),
    "postgresql": ("SET session_replication_role = replica", "RESET session_replication_role"),
}


async def tamper(database: Database, *work: str | Callable[[Connection], Any]) -> None:
    """What somebody with the whole database in hand can do: no constraint stops it."""
    before, after = UNCHECKED[database.dialect]

    engine = create_engine(database.url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for one in (before, *work, after):
            connection.execute(text(one)) if isinstance(one, str) else one(connection)
    engine.dispose()


async def found(database: Database) -> list[tuple[str, int]]:
    return [(one.what, one.seq) for one in (await verify(database)).findings]


# Intact ---------------------------------------------------------------------------------------


async def test_an_empty_audit_is_intact(database: Database) -> None:
    assert await Sealer(database).seal() == 0
    assert await verify(database) == Verdict(
        rows=0, seals=0, unsealed=0, head="00" * 32, findings=[]
    )


async def test_a_chain_that_nobody_touched_is_intact(chain: Database) -> None:
    await add_rows(chain, 10, 11)
    verdict = await verify(chain)
    assert (verdict.rows, verdict.seals, verdict.unsealed) == (9, 3, 2)
    assert verdict.findings == []
    assert verdict.head == (await head(chain)).hex()


async def test_many_rows_become_several_seals(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "MAX_ROWS", 10)
    await add_rows(database, *range(25))
    assert await Sealer(database).seal() == 25
    sizes = select(audit_seals.c.rows).order_by(audit_seals.c.number)
    assert await database.read(lambda c: list(c.scalars(sizes))) == [10, 10, 5]
    assert await found(database) == []


async def head(database: Database) -> bytes:
    newest = select(audit_seals.c.hash).order_by(audit_seals.c.number.desc()).limit(1)
    return await database.read(lambda c: bytes(c.scalar(newest)))


# Rows -----------------------------------------------------------------------------------------


async def test_a_change_in_any_column_is_found_and_its_row_named(chain: Database) -> None:
    for column in audit.c:
        if column.name in ("seq", "seal"):
            continue
        kept = await chain.read(lambda c, column=column: c.scalar(select(column).where(FIFTH)))
        changed = 77 if isinstance(kept, int) else f"{(kept or '')[:5]}x"
        await chain.write(lambda c, to={column.name: changed}: c.execute(set_fifth(to)))
        assert await found(chain) == [("row changed", 5)], column.name
        await chain.write(lambda c, to={column.name: kept}: c.execute(set_fifth(to)))
    assert await found(chain) == []


FIFTH = audit.c.seq == 5


def set_fifth(values: dict[str, Any]) -> Any:
    return update(audit).where(FIFTH).values(**values)


async def test_a_removed_row_is_named(chain: Database) -> None:
    await tamper(chain, "DELETE FROM audit WHERE seq IN (2, 8)")
    assert await found(chain) == [("row removed", 2), ("row removed", 8)]


async def test_rows_that_changed_places_are_named(chain: Database) -> None:
    await tamper(
        chain,
        "UPDATE audit SET seq = -1 WHERE seq = 4",
        "UPDATE audit SET seq = 4 WHERE seq = 6",
        "UPDATE audit SET seq = 6 WHERE seq = -1",
    )
    assert await found(chain) == [("row reordered", 4), ("row reordered", 6)]


def copied(of: int, to: int, seal: int | None) -> Callable[[Connection], Any]:
    """Add a row like another one."""

    def copy(connection: Connection) -> None:
        one = connection.execute(select(audit).where(audit.c.seq == of)).mappings().one()
        connection.execute(audit.insert(), [{**one, "seq": to, "id": f"copy{to}", "seal": seal}])

    return copy


async def test_a_row_that_was_put_under_a_seal_is_named(chain: Database) -> None:
    await tamper(chain, copied(of=5, to=50, seal=2))
    assert await found(chain) == [("row added", 50)]


async def test_a_row_that_was_put_under_another_seal_is_named(chain: Database) -> None:
    await tamper(chain, "UPDATE audit SET seal = 1 WHERE seq = 5")
    assert await found(chain) == [("row added", 5), ("row taken out of its seal", 5)]


async def test_a_row_that_was_taken_out_to_be_sealed_again_is_named(chain: Database) -> None:
    await tamper(chain, "UPDATE audit SET seal = NULL, subject_id = 'x' WHERE seq = 5")
    assert await found(chain) == [("row changed", 5)]
    await Sealer(chain).seal()
    assert ("row changed", 5) in await found(chain)


# Seals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE audit_seals SET sealed_at = '2020-01-01T00:00:00.000000Z' WHERE number = 2",
        "UPDATE audit_seals SET rows = 4 WHERE number = 2",
        "UPDATE audit_seals SET previous = hash WHERE number = 2",
    ],
)
async def test_a_changed_seal_is_named(chain: Database, change: str) -> None:
    await tamper(chain, change)
    assert await found(chain) == [("seal changed", 2)]


async def test_a_changed_hash_breaks_its_seal_and_the_next(chain: Database) -> None:
    await tamper(chain, "UPDATE audit_seals SET hash = previous WHERE number = 2")
    assert await found(chain) == [("seal changed", 2), ("seal changed", 3)]


@pytest.mark.parametrize("kept", [0, 39, 50])
async def test_a_seal_that_was_cut_short_is_named(chain: Database, kept: int) -> None:
    def cut(connection: Connection) -> None:
        entries = connection.scalar(select(audit_seals.c.entries).where(SECOND))
        connection.execute(update(audit_seals).where(SECOND).values(entries=entries[:kept]))

    await tamper(chain, cut)
    findings = await found(chain)
    assert findings[0] == ("seal changed", 2)
    assert {one for one in findings[1:]} <= {("row added", seq) for seq in (4, 5, 6)}


SECOND = audit_seals.c.number == 2


async def test_a_removed_seal_is_named(chain: Database) -> None:
    await tamper(chain, "DELETE FROM audit_seals WHERE number = 2")
    assert ("seal removed", 2) in await found(chain)


async def test_a_seal_removed_with_its_rows_is_named(chain: Database) -> None:
    await tamper(
        chain,
        "DELETE FROM audit WHERE seal = 2",
        "DELETE FROM audit_seals WHERE number = 2",
    )
    assert await found(chain) == [("seal removed", 2), ("seal changed", 3)]


async def test_the_newest_seal_is_missed_by_the_rows_that_name_it(chain: Database) -> None:
    await tamper(chain, "DELETE FROM audit_seals WHERE number = 3")
    assert await found(chain) == [("seal removed", 3)]


async def test_who_replaces_the_newest_seal_cannot_keep_a_head_noted_elsewhere(
    chain: Database,
) -> None:
    noted = (await verify(chain)).head
    await tamper(
        chain,
        "UPDATE audit SET seal = NULL, subject_id = 'x' WHERE seal = 3",
        "DELETE FROM audit_seals WHERE number = 3",
    )
    await Sealer(chain).seal()
    verdict = await verify(chain)
    assert await found(chain) == [("seal removed", 3), ("seal changed", 4)]
    assert verdict.head != noted
    await tamper(chain, rebuilt)
    verdict = await verify(chain, bytes.fromhex(noted))
    assert [one.what for one in verdict.findings] == ["noted head not in the chain"]
    assert (verdict.noted_seal, verdict.rows) == (None, 9)


def rebuilt(connection: Connection) -> None:
    """Make a new chain of the seals that are there, and note its end as the newest seal."""
    before = BEGINNING
    every = select(audit_seals).order_by(audit_seals.c.number)
    for number, row in enumerate(connection.execute(every).mappings().all(), 1):
        seal = {**row, "number": number, "previous": before}
        before = seal["hash"] = seal_hash(seal)
        old = audit_seals.c.number == row["number"]
        connection.execute(update(audit).where(audit.c.seal == row["number"]).values(seal=number))
        connection.execute(update(audit_seals).where(old).values(**seal))
        connection.execute(update(audit_head).values(number=number, hash=before))


# Somebody who knows how it works --------------------------------------------------------------


def forged(seal_too: bool) -> Callable[[Connection], Any]:
    """Change row 5 and put its new digest into seal 2, with a new hash over the seal or without."""

    def forge(connection: Connection) -> None:
        connection.execute(set_fifth({"subject_id": "nobody"}))
        row = connection.execute(select(audit).where(FIFTH)).mappings().one()
        seal = dict(connection.execute(select(audit_seals).where(SECOND)).mappings().one())
        entries = dict(ENTRY.iter_unpack(seal["entries"])) | {5: digest(row)}
        seal["entries"] = b"".join(ENTRY.pack(*entry) for entry in entries.items())
        if seal_too:
            seal["hash"] = seal_hash(seal)
        connection.execute(update(audit_seals).where(SECOND).values(**seal))

    return forge


async def test_a_new_digest_in_the_seal_does_not_hide_a_changed_row(chain: Database) -> None:
    await tamper(chain, forged(seal_too=False))
    assert await found(chain) == [("seal changed", 2)]


async def test_a_whole_new_seal_does_not_hide_a_changed_row(chain: Database) -> None:
    await tamper(chain, forged(seal_too=True))
    assert await found(chain) == [("seal changed", 3)]


# Many at once ---------------------------------------------------------------------------------


async def test_sealers_and_writers_at_once_make_one_unbroken_chain(
    database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seals, "MAX_ROWS", 7)
    writers, rows = 4, 20
    databases = [Database(database_url) for _ in range(2)]
    writing = writers

    async def write(number: int) -> None:
        nonlocal writing
        log = AuditLog(databases[number % 2])
        for one in range(rows):
            await log.store_now(a_record(one, subject_id=f"w{number}"))
        writing -= 1

    async def seal(sealer: Sealer) -> None:
        while writing:
            await sealer.seal()

    with anyio.fail_after(PATIENT):
        async with anyio.create_task_group() as work:
            for number in range(writers):
                work.start_soon(write, number)
            for one in databases:
                work.start_soon(seal, Sealer(one))
    await Sealer(database).seal()
    verdict = await verify(database)
    assert verdict.findings == []
    assert (verdict.rows, verdict.unsealed) == (writers * rows, 0)
    numbers = select(audit_seals.c.number).order_by(audit_seals.c.number)
    assert await database.read(lambda c: list(c.scalars(numbers))) == list(
        range(1, verdict.seals + 1)
    )
    for one in databases:
        await one.close()


@STARTS_A_SERVER
async def test_a_row_that_commits_late_is_sealed_later(postgres_database: str) -> None:
    database = Database(postgres_database)
    await upgrade(database)
    log = AuditLog(database)
    async with database.transaction() as late:
        log.store_with_write(late, a_record(1, subject_id="late"))
        await late.run(lambda _: None)
        await log.store_now(a_record(2, subject_id="early"))
        assert await Sealer(database).seal() == 1
    assert await Sealer(database).seal() == 1
    every = select(audit.c.subject_id, audit.c.seq, audit.c.seal).order_by(audit.c.seq)
    rows = await database.read(lambda c: [tuple(row) for row in c.execute(every)])
    assert rows == [("late", 1, 2), ("early", 2, 1)]
    assert await found(database) == []
    await database.close()


async def test_text_that_became_bytes_is_a_changed_row(database: Database) -> None:
    if database.dialect != "sqlite":
        pytest.skip("columns of PostgreSQL hold values of one type")
    await add_rows(database, 1, 2, 3)
    await Sealer(database).seal()
    as_bytes = text("UPDATE audit SET tool_name = CAST(tool_name AS BLOB) WHERE seq = 2")
    await database.write(lambda connection: connection.execute(as_bytes))
    verdict = await verify(database)
    assert [(one.what, one.seq) for one in verdict.findings] == [("row changed", 2)]
    await add_rows(database, 4)
    unsealed = text("UPDATE audit SET tool_name = CAST(tool_name AS BLOB) WHERE seq = 4")
    await database.write(lambda connection: connection.execute(unsealed))
    assert await Sealer(database).seal() == 1

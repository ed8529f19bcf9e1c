"""What is missing at the end of the audit, or all of it, is told as far as it can be known."""

from collections.abc import AsyncIterator

import pytest
from tests.gate.test_seals import add_rows, copied, found, rebuilt, tamper

from toolgate.db.engine import Database
from toolgate.db.upgrades import upgrade
from toolgate.gate.seals import Sealer
from toolgate.gate.verification import Finding, verify

pytestmark = pytest.mark.anyio


@pytest.fixture
async def chain(database_url: str) -> AsyncIterator[Database]:
    """Rows 1 to 9 under seals 1 to 3."""
    database = Database(database_url)
    await upgrade(database)
    for first in (1, 4, 7):
        await add_rows(database, first, first + 1, first + 2)
        assert await Sealer(database).seal() == 3
    yield database
    await database.close()


async def test_a_noted_head_is_found_at_its_seal(chain: Database) -> None:
    noted = bytes.fromhex((await verify(chain)).head)
    await add_rows(chain, 10)
    await Sealer(chain).seal()
    verdict = await verify(chain, noted)
    assert (verdict.findings, verdict.noted_seal, verdict.seals) == ([], 3, 4)
    beginning = await verify(chain, bytes(32))
    assert (beginning.findings, beginning.noted_seal) == ([], 0)


async def test_a_head_that_never_was_is_told(chain: Database) -> None:
    verdict = await verify(chain, b"x" * 32)
    assert verdict.findings == [Finding("noted head not in the chain", 3)]
    assert verdict.noted_seal is None


CUT = ("DELETE FROM audit WHERE seq > 3", "DELETE FROM audit_seals WHERE number > 1")


async def test_an_end_that_was_cut_off_is_told(chain: Database) -> None:
    await tamper(chain, *CUT)
    told = [("seals removed", 2), ("rows removed", 4)]
    assert await found(chain) == (told if chain.dialect == "sqlite" else told[:1])


async def test_new_rows_do_not_hide_an_end_that_was_cut_off(chain: Database) -> None:
    await tamper(chain, *CUT)
    await add_rows(chain, 10, 11)
    assert await Sealer(chain).seal() == 2
    assert await found(chain) == [("seals removed", 2), ("seal changed", 4)]


@pytest.mark.parametrize("noted", [True, False])
async def test_emptied_tables_are_told(chain: Database, noted: bool) -> None:
    emptied = ["DELETE FROM audit", "DELETE FROM audit_seals"]
    await tamper(chain, *emptied, *([] if noted else ["DELETE FROM audit_head"]))
    findings = (await verify(chain)).findings
    seals = Finding("seals removed", 1, 3)
    note = Finding("note of the newest seal removed", 0)
    rows = [Finding("rows removed", 1, 9)] if chain.dialect == "sqlite" else []
    assert findings == [seals if noted else note, *rows]


async def test_a_note_that_was_removed_stays_missing(chain: Database) -> None:
    await tamper(chain, "DELETE FROM audit_head")
    await add_rows(chain, 10)
    await Sealer(chain).seal()
    assert await found(chain) == [("note of the newest seal removed", 4)]


async def test_a_note_of_another_seal_is_told(chain: Database) -> None:
    await tamper(chain, "UPDATE audit_head SET hash = (SELECT previous FROM audit_seals LIMIT 1)")
    assert await found(chain) == [("seal changed", 3)]


@pytest.mark.parametrize("seal", [-1, 0, 99])
async def test_a_row_under_a_seal_that_does_not_exist_is_told(chain: Database, seal: int) -> None:
    await tamper(chain, copied(of=5, to=10, seal=seal))
    assert await found(chain) == [("row under a seal that does not exist", 10)]


async def test_who_cuts_rows_seals_and_notes_is_found_out_by_a_head_noted_elsewhere(
    chain: Database,
) -> None:
    noted = bytes.fromhex((await verify(chain)).head)
    counted = "UPDATE sqlite_sequence SET seq = 3 WHERE name = 'audit'"
    await tamper(chain, *CUT, rebuilt, *([counted] if chain.dialect == "sqlite" else []))
    assert (await verify(chain)).findings == []
    assert (await verify(chain, noted)).findings == [Finding("noted head not in the chain", 1)]

"""What SQLite writes ahead stays small, also with readers that stay long."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from toolgate.db import connections, wal
from toolgate.db.engine import Database

pytestmark = pytest.mark.anyio

MOST = 100_000


async def test_the_log_is_shortened_when_it_is_large_and_no_reader_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal, "MAX_WAL_BYTES", MOST)
    file = tmp_path / "one.db"
    log = tmp_path / "one.db-wal"
    database = Database(f"sqlite:///{file}")
    await database.write(lambda c: c.execute(text("CREATE TABLE t (n TEXT)")))
    with closing(sqlite3.connect(file, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM t").fetchone()
        for _ in range(20):
            await database.write(
                lambda c: c.execute(text("INSERT INTO t VALUES (zeroblob(99999))"))
            )
        large = log.stat().st_size
        assert large > MOST
        await database.shorten_wal()
        assert log.stat().st_size == large  # the reader still needs it
        assert reader.execute("SELECT count(*) FROM t").fetchone() == (0,)
        reader.execute("COMMIT")
        await database.shorten_wal()
    assert log.stat().st_size == 0
    await database.write(lambda c: c.execute(text("INSERT INTO t VALUES (1)")))
    await database.close()


async def test_a_log_that_was_large_is_cut_when_it_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MAX_WAL_BYTES", MOST)
    file, log = tmp_path / "one.db", tmp_path / "one.db-wal"
    database = Database(f"sqlite:///{file}")
    await database.write(lambda c: c.execute(text("CREATE TABLE t (n TEXT)")))
    for _ in range(5):
        await database.write(lambda c: c.execute(text("INSERT INTO t VALUES (zeroblob(99999))")))
    assert log.stat().st_size > 2 * MOST
    with closing(sqlite3.connect(file)) as other:  # all of it is copied, so it may begin anew
        assert other.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[0] == 0
    await database.write(lambda c: c.execute(text("INSERT INTO t VALUES (1)")))
    assert 0 < log.stat().st_size <= MOST
    await database.close()

"""What SQLite writes ahead stays small, also with readers that stay long."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import text

from toolgate.db import wal
from toolgate.db.connecting import MOST_WAL_BYTES
from toolgate.db.engine import Database

pytestmark = pytest.mark.anyio


async def test_the_log_is_shortened_when_it_is_large_and_no_reader_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wal, "MOST_WAL_BYTES", 100_000)
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
        assert large > 100_000
        await database.shorten_log()
        assert log.stat().st_size == large  # the reader still needs it
        assert reader.execute("SELECT count(*) FROM t").fetchone() == (0,)
        reader.execute("COMMIT")
        await database.shorten_log()
    assert log.stat().st_size == 0
    await database.write(lambda c: c.execute(text("INSERT INTO t VALUES (1)")))
    await database.close()


async def test_a_log_that_was_large_is_cut_when_it_begins_anew(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'one.db'}")
    limit = await database.write(lambda c: c.scalar(text("PRAGMA journal_size_limit")))
    assert limit == MOST_WAL_BYTES
    await database.close()

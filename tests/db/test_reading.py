"""What is lent for reading cannot write, on either database."""

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from toolgate.db.engine import Database
from toolgate.db.upgrades import upgrade

pytestmark = pytest.mark.anyio

WRITES = [
    "INSERT INTO keys (id, hash, created_at) VALUES ('x', '', '')",
    "DELETE FROM audit",
    "UPDATE documents SET id = 'x'",
    "DROP TABLE documents",
]


@pytest.mark.parametrize("statement", WRITES)
@pytest.mark.parametrize("quick", [False, True])
async def test_a_read_cannot_write(database_url: str, statement: str, quick: bool) -> None:
    database = Database(database_url)
    await upgrade(database)
    with pytest.raises(DBAPIError, match=r"readonly|read-only"):
        await database.read(lambda c: c.execute(text(statement)), quick=quick)
    assert await database.read(lambda c: c.scalar(text("SELECT count(*) FROM keys"))) == 0
    await database.close()

"""A pack whose migrations do not make the tables that its code uses: its author is told which."""

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from tests.cli.conftest import cli
from tests.packs.test_broken_packs import Install, install

from toolgate.db import upgrades
from toolgate.db.outages import is_outage

__all__ = ["cli", "install"]

SOURCE = """import sqlalchemy as sa
import toolgate.pack as tg
tables = sa.MetaData()
animals = sa.Table("zoo_animals", tables, sa.Column("id", sa.String), sa.Column("legs", sa.Integer))
family = tg.Family("zoo", tg.Pack("zoo", tg.SENTENCE, "Animals."))
class Counted(tg.Output):
    animals: int
@contextlib.asynccontextmanager
async def opened(site, settings):
    yield site
@family.tool("zoo.count", role=tg.Role.ADMIN, effect=tg.Effect.READ, title="Count")
async def count(ctx: tg.Context[tg.Site], args: tg.NoArguments) -> Counted:
    "Count."
    every = sa.select(animals.c.legs)
    return Counted(animals=len(await ctx.world.database.read(lambda c: c.execute(every).all())))
OFFER = tg.Offer(
    pack=family.pack,
    tools=tuple(family.tools),
    open=opened,
    schema=tg.Schema(tables, "MIGRATIONS", "zoo_version"),
)
"""
FIRST = """import sqlalchemy as sa
from alembic import op
revision = "0001"
down_revision = None
def upgrade() -> None:
    op.create_table("zoo_animals", sa.Column("id", sa.String), sa.Column("legs", sa.Integer))
"""
WRONG = {
    "table": (FIRST.replace("zoo_animals", "zoo_beasts"), "table zoo_animals of pack 'zoo'"),
    # Of another length: Python compiles a file again where its time or its size has changed.
    "column": (FIRST.replace("legs", "number_of_feet"), "column zoo_animals.legs of pack 'zoo'"),
}


@pytest.fixture
def installed(
    install: Install,
    migrations_once: Callable[..., None],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Path:
    """The pack with good migrations, which run each time; the file of the first."""
    monkeypatch.setattr(upgrades, "_run", migrations_once)
    name = re.sub(r"\W", "_", f"zoo_{request.node.name}")
    folder = tmp_path / f"{name}_migrations"
    folder.mkdir()
    (folder / "__init__.py").touch()
    install(name, "import contextlib\n" + SOURCE.replace("MIGRATIONS", folder.name))
    (folder / "0001_first.py").write_text(FIRST)
    return folder / "0001_first.py"


@pytest.mark.parametrize("case", WRONG)
def test_an_upgrade_that_leaves_something_out_is_taken_back(
    cli: Any, installed: Path, case: str
) -> None:
    migration, missing = WRONG[case]
    installed.write_text(migration)
    ended = cli("db", "upgrade")
    assert ended.code == 2
    assert f"do not make {missing}. Nothing was changed" in ended.err
    installed.write_text(FIRST)
    upgraded = cli("db", "upgrade").out
    assert upgraded.startswith("Upgraded the database from nothing to ")
    assert ", the tables of pack zoo from nothing to 0001." in upgraded
    assert ", pack zoo 0001." in cli("db", "upgrade").out
    assert cli("call", "zoo.count").json == {"animals": 0}


def test_an_upgrade_says_what_became_of_each_pack(cli: Any, installed: Path) -> None:
    assert cli("db", "upgrade", "--json").json["packs"] == {"zoo": {"from": None, "to": "0001"}}
    assert cli("db", "upgrade", "--json").json["packs"] == {"zoo": {"from": "0001", "to": "0001"}}


@pytest.mark.parametrize(
    ("statement", "missing"),
    [
        ("DROP TABLE zoo_animals", "table zoo_animals of pack 'zoo'"),
        ("ALTER TABLE zoo_animals DROP COLUMN legs", "column zoo_animals.legs of pack 'zoo'"),
    ],
    ids=["table", "column"],
)
def test_what_a_database_lacks_is_a_defect_and_no_outage(
    cli: Any, installed: Path, tmp_path: Path, statement: str, missing: str
) -> None:
    assert cli("db", "upgrade").code == 0
    with sqlite3.connect(tmp_path / ".toolgate/toolgate.db") as database:
        database.execute(statement)
    database.close()
    ended = cli("call", "zoo.count")
    assert "does not answer" not in ended.out
    assert ended.code == 1
    assert f"zoo.count failed: OperationalError in {tmp_path}" in ended.err
    assert ("no such table: zoo_animals" in ended.err) is statement.startswith("DROP")
    assert ("no such column: zoo_animals.legs" in ended.err) is statement.startswith("ALTER")
    assert f"it lacks {missing}" in cli("doctor").out
    assert f"lacks {missing}" in cli("db", "upgrade").err


BROKEN = {
    "name": ("op.create_table", "op.creat_table", 6, "AttributeError: module 'alembic.op' has no"),
    "syntax": ("def upgrade() -> None:", "def upgrade( -> None:", 5, "SyntaxError: "),
    "statement": ("op.create_table", "op.drop_table('zoo');op.f", 6, "no such table: zoo"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_migration_that_fails_is_named_with_its_line(
    cli: Any, installed: Path, tmp_path: Path, what: str
) -> None:
    right, wrong, line, words = BROKEN[what]
    installed.write_text(FIRST.replace(right, wrong))
    ended = cli("db", "upgrade")
    assert ended.code == 2
    assert f"A migration of pack 'zoo' fails: {installed}:{line}: " in ended.err
    assert words in ended.err
    assert "Something went wrong on our side" not in ended.err


def test_a_migration_without_anything_to_run_is_named(cli: Any, installed: Path) -> None:
    installed.write_text(FIRST.replace("def upgrade", "def upgraded"))
    ended = cli("db", "upgrade")
    assert ended.code == 2
    assert "Pack 'zoo', field schema: 0001_first.py in" in ended.err
    assert "needs a function: `def upgrade() -> None:`." in ended.err


@pytest.mark.parametrize(
    ("words", "outage"),
    [
        ("no such table: audit", True),
        ("no such table: zoo_animals", False),
        ("no such table: main.zoo_animals", False),
        ("the statement failed [SQLITE_ERROR]", False),
        ("cannot start a transaction within a transaction", True),
    ],
)
def test_only_the_gates_own_tables_are_an_outage_where_they_are_gone(
    words: str, outage: bool
) -> None:
    origin = sqlite3.OperationalError(words)
    origin.sqlite_errorname = "SQLITE_ERROR"
    assert is_outage(OperationalError("SELECT 1", {}, origin)) is outage

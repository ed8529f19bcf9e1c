"""`toolgate db`: the database's schema."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from toolgate.cli import environment
from toolgate.cli.options import AsJson, ConfigFile, DataFolder, command_group, command_settings
from toolgate.cli.output import say, say_json
from toolgate.cli.problems import ExitCode, Stop
from toolgate.cli.progress import progress_line

if TYPE_CHECKING:
    from toolgate.document_stores import Progress
    from toolgate.gate.context import Report
    from toolgate.settings import Settings


def group() -> typer.Typer:
    """The command group."""
    return command_group("The database's schema.", upgrade=upgrade)


def upgrade(
    ctx: typer.Context,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Upgrade the database to the newest schema, in one transaction, and index its documents."""
    settings = command_settings(ctx, config, data)
    upgrades, missing = environment.run_async(lambda: _upgrade(settings))
    changed = [one for one in upgrades if one.before != one.after]
    if missing:
        step = "Its migrations noted that they had run: add one that makes it"
        raise Stop(f"The database lacks {', '.join(missing)}. {step}.", ExitCode.FAILED)
    if as_json:
        gate, *packs = upgrades
        of_packs = {one.pack: {"from": one.before, "to": one.after} for one in packs}
        say_json({"from": gate.before, "to": gate.after, "packs": of_packs})
    elif not changed:
        gate, *packs = upgrades
        of_packs = "".join(f", pack {one.pack} {one.after}" for one in packs)
        say(f"The database already has the newest schema: {gate.after}{of_packs}.")
    else:
        say(f"Upgraded {', '.join(one.words() for one in changed)}.")


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What became of one set of tables."""

    pack: str | None
    before: str | None
    after: str | None

    def words(self) -> str:
        """From where to where."""
        what = f"the tables of pack {self.pack}" if self.pack else "the database"
        return f"{what} from {self.before or 'nothing'} to {self.after}"


def _shown_by(report: "Report | None") -> "Progress":
    async def show(done: int, total: int) -> None:
        if report is not None:
            await report(done, total, f"Indexing documents: {done:,} of {total:,}")

    return show


async def _upgrade(settings: "Settings") -> tuple[list[Upgrade], list[str]]:
    """The gate's tables first, then those of packs; and what is missing all the same."""
    from toolgate.app import offers_of, schemas_of
    from toolgate.data_folder import make_private
    from toolgate.db.engine import Database
    from toolgate.db.schemas import GATE
    from toolgate.db.upgrades import current_revision, missing_parts, upgrade
    from toolgate.document_stores import DocumentStores

    schemas = schemas_of(offers_of(settings))
    every = [GATE, *schemas]
    database = Database(settings.database_url)
    try:
        make_private(settings.data, database)
        before = [await current_revision(database, one) for one in every]
        await upgrade(database, schemas)
        with progress_line("documents") as report:
            await DocumentStores(settings, database).complete_index(_shown_by(report))
        after = [await current_revision(database, one) for one in every]
        upgrades = [Upgrade(one.pack, *two) for one, *two in zip(every, before, after, strict=True)]
        return upgrades, await missing_parts(database, every)
    finally:
        await database.close()

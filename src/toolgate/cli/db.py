"""`toolgate db`: the database's schema."""

from typing import TYPE_CHECKING

import typer

from toolgate.cli import environment
from toolgate.cli.options import AsJson, ConfigFile, DataFolder, command_group, command_settings
from toolgate.cli.output import say, say_json

if TYPE_CHECKING:
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
    """Upgrade the database to the newest schema, in one transaction."""
    settings = command_settings(ctx, config, data)
    before, after, changed = environment.run_async(lambda: _upgrade(settings))
    if as_json:
        say_json({"from": before, "to": after})
    elif not changed:
        say(f"The database already has the newest schema: {after}.")
    else:
        say(f"Upgraded the database from {before or 'nothing'} to {after}.")


async def _upgrade(settings: "Settings") -> tuple[str | None, str | None, bool]:
    from toolgate.app import offers_of, schemas_of
    from toolgate.data_folder import make_private
    from toolgate.db.engine import Database
    from toolgate.db.upgrades import current_revision, pending_upgrades, upgrade

    schemas = schemas_of(offers_of(settings))

    database = Database(settings.database_url)
    try:
        make_private(settings.data, database)
        before, changed = (
            await current_revision(database),
            bool(await pending_upgrades(database, schemas)),
        )
        await upgrade(database, schemas)
        return before, await current_revision(database), changed
    finally:
        await database.close()

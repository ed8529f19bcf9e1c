"""`toolgate db`: the database's schema."""

from typing import TYPE_CHECKING

import typer

from toolgate.cli import opening
from toolgate.cli.options import AsJson, ConfigFile, DataFolder, help_when_alone, load_settings
from toolgate.cli.output import say, say_json

if TYPE_CHECKING:
    from toolgate.settings import Settings


def group() -> typer.Typer:
    """The command group."""
    app = typer.Typer(help="The database's schema.")
    app.callback(invoke_without_command=True)(help_when_alone)
    app.command("upgrade")(upgrade)
    return app


def upgrade(
    ctx: typer.Context,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Upgrade the database to the newest schema, in one transaction."""
    settings = load_settings(ctx, config, data)
    before, after = opening.wait_for(lambda: _upgrade(settings))
    if as_json:
        say_json({"from": before, "to": after})
    elif before == after:
        say(f"The database already has the newest schema: {after}.")
    else:
        say(f"Upgraded the database from {before or 'nothing'} to {after}.")


async def _upgrade(settings: "Settings") -> tuple[str | None, str | None]:
    from toolgate.data_folder import make_private
    from toolgate.db.engine import Database
    from toolgate.db.upgrades import current, upgrade

    database = Database(settings.database_url)
    try:
        make_private(settings.data, database)
        before = await current(database)
        await upgrade(database)
        return before, await current(database)
    finally:
        await database.close()

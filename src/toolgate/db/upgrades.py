"""Bringing the database to the newest schema."""

from importlib import resources

from sqlalchemy import Connection, inspect, text

from toolgate.db.engine import Database

LOCK = 0x7001_6A7F


class OtherSchema(RuntimeError):
    """The database has another schema than this version needs, and is left as it is."""


def newest() -> str:
    """The newest revision; migration files are named by it."""
    folder = resources.files("toolgate.db.migrations") / "versions"
    return max(file.name.partition("_")[0] for file in folder.iterdir() if file.name[:4].isdigit())


async def current(database: Database) -> str | None:
    """The database's revision; None when it is empty."""
    return await database.read(_revision)


async def upgrade_at_start(database: Database) -> None:
    """Upgrade an embedded or an empty database; refuse to touch another one unasked."""
    revision = await current(database)
    if revision == newest():
        return
    older = revision is not None and revision < newest()
    if older and database.dialect != "sqlite":
        raise OtherSchema(
            f"The database has schema {revision}, this version needs {newest()}. "
            "Run `toolgate db upgrade`."
        )
    await upgrade(database)


async def upgrade(database: Database) -> None:
    """Run every migration that is missing, in one transaction."""
    revision = await current(database)
    if revision is not None and revision > newest():
        raise OtherSchema(
            f"The database has schema {revision}, newer than this version knows ({newest()}). "
            "Use the toolgate that made it, or a newer one."
        )
    await database.write(_run)


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    return connection.scalar(text("SELECT version_num FROM alembic_version"))


def _run(connection: Connection) -> None:
    # Imported here: a database that is up to date never needs Alembic.
    from alembic import command  # noqa: PLC0415
    from alembic.config import Config  # noqa: PLC0415

    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": LOCK})
    config = Config()
    config.set_main_option("script_location", "toolgate.db:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")

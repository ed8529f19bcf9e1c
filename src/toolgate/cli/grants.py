"""`toolgate grants`: clients that people allowed to act for them."""

from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from toolgate.cli import environment
from toolgate.cli.options import AsJson, ConfigFile, DataFolder, command_group, command_settings
from toolgate.cli.output import client_label, say, say_json, table
from toolgate.cli.problems import Stop

if TYPE_CHECKING:
    from toolgate.db.engine import Database

Whose = Annotated[
    str,
    typer.Argument(metavar="ID", help="Id of a grant, or of a user or key to end all of theirs."),
]

MAY = {"tools": "read, write", "tools:read": "read"}
"""What the scopes of a grant mean."""


def group() -> typer.Typer:
    """The commands about grants."""
    return command_group("Clients that people have allowed to act for them.", list=list_, end=end)


def list_(
    ctx: typer.Context,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """List the active grants, newest first."""
    settings = command_settings(ctx, config, data)
    rows = environment.run_on_database(settings, _list)
    if as_json:
        return say_json(rows)
    if not rows:
        return say("No client is allowed to act for anybody.")
    table(("id", "client", "for", "may", "since", "last token", "until"), map(_row, rows))


async def _list(database: "Database") -> list[dict[str, Any]]:
    from toolgate.identity.oauth.grant_list import grants_in_force

    return await grants_in_force(database)


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["id"],
        _client(row),
        f"user {row['user_id']}" if row["user_id"] else f"key {row['key_name'] or row['key_id']}",
        MAY.get(row["scope"], "nothing"),
        row["created_at"][:10],
        row["used_at"][:16].replace("T", " ") if row["used_at"] else "-",
        row["expires_at"][:10],
    )


def _client(row: dict[str, Any]) -> str:
    """By its name and id; a key in the place of a client by where its answer went."""
    if row["client_id"] != _key(row):
        return client_label(row["client_name"], row["client_id"])
    parts = urlsplit(str(row["redirect_uri"]))
    return f"{row['client_id']} at {parts.netloc or parts.scheme}"


def _key(row: dict[str, Any]) -> str | None:
    from toolgate.identity.keys import SETTING_KEY_ID

    key_id = row["key_id"]
    return key_id if key_id in (None, SETTING_KEY_ID) else f"key:{key_id}"


def end(
    ctx: typer.Context,
    whose: Whose,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """End a grant, or all of a user or key. Running servers refuse their tokens within a second."""
    settings = command_settings(ctx, config, data)
    many = environment.run_on_database(settings, lambda database: _end(database, whose))
    if not many:
        raise Stop(f"There is no grant of {whose!r}. `toolgate grants list` shows them.")
    if as_json:
        return say_json({"ended": many})
    say(f"{'1 grant is' if many == 1 else f'{many} grants are'} ended.")


async def _end(database: "Database", whose: str) -> int:
    from toolgate.identity.oauth.grant_list import end_grants

    return await end_grants(database, whose)

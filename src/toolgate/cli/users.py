"""`toolgate users`: make and end the private keys of users."""

from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from toolgate.cli import environment
from toolgate.cli.options import AsJson, ConfigFile, DataFolder, command_group, command_settings
from toolgate.cli.output import definitions, say, say_json, strong
from toolgate.cli.problems import Stop

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sqlalchemy import Connection

    from toolgate.identity.users import Users
    from toolgate.settings import Settings

T = TypeVar("T")
Uid = Annotated[str, typer.Argument(metavar="UID", help="Id of the user.")]
Replace = Annotated[
    bool, typer.Option("--replace", help="End the key that the user has, and make another.")
]


def group() -> typer.Typer:
    """The command group."""
    return command_group("Private keys of users.", key=key, revoke=revoke)


def key(
    ctx: typer.Context,
    uid: Uid,
    *,
    replace: Replace = False,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Make a user's private key (api.privateKey). It is shown once; only its hash is stored.

    Whoever holds it acts as that user, also over MCP: `toolgate mcp --token KEY`.
    """
    from toolgate.identity.users import HasPrivateKey, NoSuchUser

    settings = command_settings(ctx, config, data)
    try:
        made = _run(
            settings,
            lambda users: users.give_private_key(uid, _note("users.key", uid), replacing=replace),
        )
    except NoSuchUser:
        why = f"There is no record of user {uid!r}."
        raise Stop(f"{why} One is made when a user signs in, and by sync_users.") from None
    except HasPrivateKey:
        why = f"User {uid!r} has a private key, which cannot be shown again."
        raise Stop(f"{why} Give --replace to make another; the old one then ends.") from None
    if as_json:
        return say_json({"uid": uid, "key": made})
    definitions({"Key": strong(made), "For": f"user {uid}"})
    say("\nKeep the key now: only its hash is stored, so it cannot be shown again.")


def revoke(
    ctx: typer.Context,
    uid: Uid,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """End a user's private key. Running servers refuse it within a second."""
    from toolgate.identity.users import NoSuchUser

    settings = command_settings(ctx, config, data)
    try:
        _run(settings, lambda users: users.end_private_key(uid, _note("users.revoke", uid)))
    except NoSuchUser:
        raise Stop(f"There is no private key of user {uid!r}.") from None
    if as_json:
        return say_json({"uid": uid, "revoked": True})
    say(f"The private key of user {uid} is revoked.")


def _run(settings: "Settings", work: "Callable[[Users], Awaitable[T]]") -> T:
    """Run work on the records of users, wherever they are."""

    async def run() -> T:
        from toolgate.document_stores import DocumentStores
        from toolgate.identity.users import Users

        async with environment.database(settings, existing=True) as database:
            stores = DocumentStores(settings, database)
            try:
                return await work(Users(stores.of_users(), database))
            finally:
                await stores.close()

    return environment.run_async(run)


def _note(command: str, uid: str) -> "Callable[[Connection], None]":
    """Audits what this command does."""
    from toolgate.gate.operators import note_operator

    return lambda connection: note_operator(connection, command, client_id=f"user:{uid}")

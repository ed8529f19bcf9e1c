"""`toolgate keys`: make, list and revoke API keys."""

import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgate.cli import environment
from toolgate.cli.options import AsJson, ConfigFile, DataFolder, command_group, command_settings
from toolgate.cli.output import definitions, note, say, say_json, strong, table, warning
from toolgate.cli.principals import key_state
from toolgate.cli.problems import Stop

if TYPE_CHECKING:
    from toolgate.db.engine import Database
    from toolgate.identity.keys import NewKey, Note
    from toolgate.settings import Settings

RoleName = Annotated[
    str | None, typer.Option("--role", metavar="ROLE", help="public, user or admin.")
]
Agent = Annotated[
    str | None, typer.Option("--agent", metavar="TYPE", help="pm, pa or worker, instead of a role.")
]
UserId = Annotated[
    str | None, typer.Option("--user", metavar="UID", help="The user the key is for.")
]
ProjectId = Annotated[
    str | None, typer.Option("--project", metavar="ID", help="The one project of an agent.")
]
TaskId = Annotated[
    str | None, typer.Option("--task", metavar="ID", help="The one task of an agent.")
]
JobId = Annotated[str | None, typer.Option("--job", metavar="ID", help="The one job of an agent.")]
Name = Annotated[
    str | None,
    typer.Option("--name", metavar="NAME", help="Name shown in lists and in the audit."),
]
Expires = Annotated[
    str | None, typer.Option(metavar="TIME", help="Lifetime of the key: 90d, 12h or 30m.")
]
KeyId = Annotated[str, typer.Argument(metavar="ID", help="The key's id, from `keys list`.")]

LONGEST_NAME = 100
LONGEST_ID = 128
DURATION = re.compile(r"([1-9][0-9]{0,5})([dhm])")
IN_A_DAY = {"d": 1, "h": 24, "m": 24 * 60}


def group() -> typer.Typer:
    """The command group."""
    return command_group(
        "Create, list and revoke API keys.", create=create, list=list_, revoke=revoke
    )


def create(
    ctx: typer.Context,
    *,
    role: RoleName = None,
    user: UserId = None,
    agent: Agent = None,
    project: ProjectId = None,
    task: TaskId = None,
    job: JobId = None,
    name: Name = None,
    expires: Expires = None,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Create a key for a role or an agent type. It is shown once; only its hash is stored.

    An agent whose key is bound to a project, task or job finds no other. A worker without a task
    or job finds none.
    """
    bound = _bound_ids(agent, project=project, task=task, job=job)
    _check_id("user", user)
    options = _role_or_agent(role, agent) | {
        "bound": bound,
        "user_id": user,
        "name": _check_name(name),
        "days": None if expires is None else days(expires),
    }
    settings = command_settings(ctx, config, data)
    ids = bound | ({} if user is None else {"user_id": user})

    async def make(database: "Database") -> "tuple[NewKey, list[str]]":
        new_key = await _create(database, options)
        return new_key, [] if agent is None else await _warnings(database, settings, agent, ids)

    new_key, warnings = environment.run_on_database(settings, make)
    for one in warnings:
        note(f"{warning('Warning:')} {one}")
    if as_json:
        label = {"name": new_key.name} if new_key.name else {}
        return say_json({"id": new_key.id, "key": new_key.key, "role": new_key.role} | label | ids)
    whose = f"{new_key.role}, user {user}" if user else new_key.role
    details = {
        "Key": strong(new_key.key),
        "Id": new_key.id,
        "For": whose,
        "Expires": expires or "never",
    }
    details |= {"Bound to": _bound_text(bound)} if bound else {}
    definitions(details | ({"Name": new_key.name} if new_key.name else {}))
    say("\nKeep the key now: only its hash is stored, so it cannot be shown again.")


def _check_name(name: str | None) -> str | None:
    if name is None:
        return None
    if not name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise Stop(f"--name takes 1 to {LONGEST_NAME} printable characters.")
    return name.strip()


def _bound_ids(agent: str | None, **options: str | None) -> dict[str, str]:
    """The ids that the key is bound to, by column."""
    from toolgate.gate.fields import plain_id

    for option, value in options.items():
        if value is None:
            continue
        if agent is None:
            raise Stop(f"--{option} is for the key of an agent. Use --agent (pm, pa, worker).")
        _check_id(option, value)
    given = {option: value for option, value in options.items() if value is not None}
    return {f"{option}_id": plain_id(value) for option, value in given.items()}


def _check_id(option: str, value: str | None) -> None:
    if value is None:
        return
    if not value.strip() or len(value) > LONGEST_ID or not value.isprintable():
        raise Stop(f"--{option} takes an id of 1 to {LONGEST_ID} printable characters.")


async def _warnings(
    database: "Database", settings: "Settings", agent: str, ids: dict[str, str]
) -> list[str]:
    """For what the key of an agent is of no use, as things are."""
    from toolgate.app import offers_of

    idle = agent == "worker" and not {"task_id", "job_id"} & {*ids}
    found = ["a worker's key without --task or --job reaches no task."] if idle else []
    for offer in offers_of(settings):
        if (ask := offer.key_warnings) is not None:
            found += await database.read(lambda one, ask=ask: ask(one, ids))
    return found


def _bound_text(row: dict[str, Any]) -> str:
    from toolgate.gate.principal import BOUND

    ids = [f"{name.removesuffix('_id')} {row[name]}" for name in BOUND if row.get(name)]
    return ", ".join(ids) or "-"


def _role_or_agent(role: str | None, agent: str | None) -> dict[str, Any]:
    from toolgate.gate.principal import AgentType, Role

    if (role is None) == (agent is None):
        why = "A key is for a role or an agent type."
        raise Stop(f"{why} Use --role (public, user, admin) or --agent (pm, pa, worker).")
    if role is not None and role not in list(Role):
        raise Stop(f"There is no role {role!r}. Roles: {', '.join(Role)}.")
    if agent is not None and agent not in list(AgentType):
        raise Stop(f"There is no agent type {agent!r}. Types: {', '.join(AgentType)}.")
    return {
        "role": Role(role) if role else None,
        "agent_type": AgentType(agent) if agent else None,
    }


def days(text: str) -> float:
    """`90d`, `12h` or `30m` in days."""
    match = DURATION.fullmatch(text)
    if not match:
        raise Stop(
            f"--expires {text!r} is not a duration. Write days, hours or minutes, 1 to 999999 of "
            "them: 90d, 12h, 30m."
        )
    return int(match[1]) / IN_A_DAY[match[2]]


async def _create(database: "Database", options: dict[str, Any]) -> "NewKey":
    from toolgate.identity.keys import Keys

    return await Keys(database).create(**options, note=audit_note("keys.create"))


def audit_note(command: str) -> "Note":
    """Audits what this command does to a key."""
    from toolgate.gate.operators import note_operator

    return lambda connection, key_id: note_operator(connection, command, client_id=f"key:{key_id}")


def list_(
    ctx: typer.Context,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """List the keys, without their secrets."""
    settings = command_settings(ctx, config, data)
    keys = environment.run_on_database(settings, _list)
    rows = [row | {"state": key_state(row)} for row in keys]
    if as_json:
        return say_json(rows)
    if not rows:
        return say("No keys. `toolgate keys create` makes one.")
    columns = ("id", "name", "for", "user", "bound to", "created", "expires", "state")
    table(columns, map(_row, rows))


async def _list(database: "Database") -> list[dict[str, Any]]:
    from toolgate.identity.keys import Keys

    return await Keys(database).list()


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    return (
        row["id"],
        row["name"] or "-",
        _holder(row),
        row["user_id"] or "-",
        _bound_text(row),
        row["created_at"][:10],
        _minute(row["expires_at"]) if row["expires_at"] else "never",
        row["state"],
    )


def _holder(row: dict[str, Any]) -> str:
    if row["node_id"]:
        return "node"
    return row["role"] or f"agent {row['agent_type']}"


def _minute(time: str) -> str:
    return time[:16].replace("T", " ")


def revoke(
    ctx: typer.Context,
    key_id: KeyId,
    config: ConfigFile = None,
    data: DataFolder = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key. Running servers refuse it within a second."""
    settings = command_settings(ctx, config, data)
    environment.run_on_database(settings, lambda database: _revoke(database, key_id))
    if as_json:
        return say_json({"id": key_id, "revoked": True})
    say(f"Key {key_id} is revoked.")


async def _revoke(database: "Database", key_id: str) -> None:
    from toolgate.identity.keys import Keys, UnknownKey

    try:
        await Keys(database).revoke(key_id, audit_note("keys.revoke"))
    except UnknownKey:
        why = f"There is no key {key_id!r} in force."
        raise Stop(f"{why} `toolgate keys list` shows them.") from None

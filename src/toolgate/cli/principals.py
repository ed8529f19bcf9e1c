"""Act as: `admin`, `user:UID`, `agent:pm`, `node:SLUG`, `public`, `key:ID`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from toolgate.cli.problems import ExitCode, Stop

if TYPE_CHECKING:
    from toolgate.gate.principal import Principal
    from toolgate.identity.keys import Keys

FORMS = (
    "admin, user, user:UID, agent:pm, agent:pa, agent:worker, agent:TYPE:ID, node:SLUG, public, "
    "key:ID"
)
OPERATOR = "cli"
"""The id in the audit of who sits at the command line."""

As = Annotated[
    str,
    typer.Option("--as", metavar="PRINCIPAL", help=f"Act as: {FORMS}."),
]


async def principal_named(text: str, keys: "Keys") -> "Principal":
    """The principal of this spelling."""
    # Imported here: `toolgate --help` needs none of it.
    from toolgate.gate.principal import (
        ANONYMOUS,
        AgentType,
        Role,
        of_node,
        of_role,
    )

    kind, colon, rest = text.partition(":")
    match kind, rest:
        case "admin", "" if not colon:
            return of_role(Role.ADMIN, OPERATOR)
        case "user", _ if bool(colon) == bool(rest):
            return of_role(Role.USER, OPERATOR, rest or None)
        case "agent", _ if rest in list(AgentType) or ":" in rest:
            return await _agent(rest, keys)
        case "node", _ if rest:
            return of_node(rest, OPERATOR)
        case "public", "" if not colon:
            return ANONYMOUS
        case "key", _ if rest:
            return await _holder(rest, keys)
        case _:
            raise Stop(f"There is no principal {text!r}. Use one of: {FORMS}.")


async def _agent(text: str, keys: "Keys") -> "Principal":
    """An agent of this type, or the one of this type that holds a key."""
    from toolgate.gate.principal import AgentType, of_agent

    agent_type, colon, key_id = text.partition(":")
    if not colon:
        return of_agent(AgentType(agent_type), OPERATOR)
    holder = await _holder(key_id, keys)
    if holder.agent_type != agent_type:
        is_for = f"an agent of type {holder.agent_type}" if holder.agent_type else "no agent"
        raise Stop(f"Key {key_id} is for {is_for}. `toolgate keys list` shows them.")
    return holder


async def _holder(key_id: str, keys: "Keys") -> "Principal":
    key = next((row for row in await keys.list() if row["id"] == key_id), None)
    if key is None:
        raise Stop(f"There is no key {key_id}. `toolgate keys list` shows them.")
    holder = await keys.holder(key_id)
    if holder is None:
        state = key_state(key)
        raise Stop(f"Key {key_id} is {state}. `toolgate keys list` shows them.", ExitCode.REFUSED)
    return holder


IN_FORCE = "in force"


def key_state(row: dict[str, Any]) -> str:
    """`in force`, `expired` or `revoked`."""
    from toolgate.gate.audit_records import timestamp

    if row["revoked_at"]:
        return "revoked"
    return "expired" if row["expires_at"] and row["expires_at"] <= timestamp() else IN_FORCE

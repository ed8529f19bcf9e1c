"""What succeeds leaves an audit row, in the transaction of what was done."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, select

from toolgate.db.tables import keys
from toolgate.gate.principal import Kind, Principal, Role, of_person, of_role
from toolgate.identity.keys import SETTING_KEY_ID, principal_of_key

REGISTERED = "oauth-registered"
SIGNED_IN = "oauth-signed-in"
GRANTED = "oauth-granted"
TOKEN_ISSUED = "oauth-token-issued"  # noqa: S105 (a rule's name)
REFRESHED = "oauth-refreshed"
REVOKED = "oauth-revoked"

Note = Callable[[Connection, str, Principal], None]
"""Stores a row that says what was done, and for whom."""


def principal_of(connection: Connection, user_id: str | None, key_id: str | None) -> Principal:
    """Who signed in, as the audit names callers."""
    if key_id is None:
        return of_person(user_id or "")
    if key_id == SETTING_KEY_ID:
        return of_role(Role.ADMIN, SETTING_KEY_ID)
    row = connection.execute(select(keys).where(keys.c.id == key_id)).first()
    if row is None:
        return Principal(kind=Kind.ANONYMOUS, id=f"key:{key_id}", user_id=user_id)
    return principal_of_key(row)


def principal_of_grant(connection: Connection, grant: Mapping[Any, Any]) -> Principal:
    """Who gave a grant, with the client that it was given to."""
    who = principal_of(connection, grant["user_id"], grant["key_id"])
    return replace(who, client_id=grant["client_id"], grant_id=grant["id"])

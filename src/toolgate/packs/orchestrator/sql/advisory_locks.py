"""Locks on what has no row of its own: a scope that is counted, a text that is compared."""

import hashlib

from sqlalchemy import Connection, func, select

from toolgate.packs.orchestrator.pack import ORCHESTRATOR


def lock(connection: Connection, *names: str) -> None:
    """Wait for others who locked the same names; held until the transaction ends.

    Under READ COMMITTED, statements after this one see what those others stored. On SQLite, who
    writes is alone. Whoever locks rows too, locks them first, or always after this: two that do it
    in different orders would wait for each other.
    """
    if connection.dialect.name == "postgresql":
        whole = "\0".join((ORCHESTRATOR.name, *names))
        number = int.from_bytes(hashlib.sha256(whole.encode()).digest()[:8], signed=True)
        connection.execute(select(func.pg_advisory_xact_lock(number)))

"""What it costs to check a credential: our opaque tokens beside signed ones, few beside many.

python -m bench credentials

CPU time of one check on this machine, the least of several rounds.
"""

import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, OKPKey
from sqlalchemy import Connection, insert

from toolgate.adapters.sql.documents import SqlDocuments
from toolgate.db.engine import Database
from toolgate.db.oauth_tables import grants, tokens
from toolgate.db.upgrades import upgrade
from toolgate.gate.audit_records import timestamp
from toolgate.identity.credentials import Credentials
from toolgate.identity.keys import Keys
from toolgate.identity.oauth import opaque
from toolgate.identity.users import Users
from toolgate.ports.users import NAMESPACE

HERE = "http://127.0.0.1/mcp"
RESOURCES = frozenset({HERE})
CHECKS, ROUNDS, BATCH = 500, 7, 5_000
MANY = 1_000_000


async def main(most: int) -> None:
    """Print a table."""
    with tempfile.TemporaryDirectory() as folder:
        for many in (10, most):
            await _opaque(Path(folder) / f"{many}.db", many)
    for name, key in (
        ("ES256", ECKey.generate_key("P-256")),
        ("Ed25519", OKPKey.generate_key("Ed25519")),
    ):
        await _signed(name, key)


async def _opaque(file: Path, many: int) -> None:
    database = Database(f"sqlite:///{file}")
    await upgrade(database)
    keys = Keys(database)
    credentials = Credentials(database, keys, Users(SqlDocuments(database, NAMESPACE), database))
    kept = await _fill(database, many)

    async def seen() -> None:
        assert await credentials.identify(kept, RESOURCES)

    async def unseen() -> None:
        credentials.forget()
        assert await credentials.identify(kept, RESOURCES)

    print(f"opaque, {many:>9,} tokens, seen before      {await _least(seen):8.1f} µs")
    print(f"opaque, {many:>9,} tokens, not seen before  {await _least(unseen):8.1f} µs")
    await database.close()


async def _fill(database: Database, many: int) -> str:
    """So many grants with a token each; one of the tokens."""
    made = opaque.new(opaque.ACCESS)
    for first in range(0, many, BATCH):
        batch = [opaque.new(opaque.ACCESS) for _ in range(min(BATCH, many - first))]
        await database.write(lambda c, batch=batch: _store(c, batch))
    await database.write(lambda c: _store(c, [made]))
    return made.text


def _store(connection: Connection, made: list[opaque.Secret]) -> None:
    later = timestamp(seconds=3600)
    granted = {"client_id": "c", "user_id": "jane", "scope": "tools", "resource": HERE,
               "redirect_uri": "", "challenge": "", "code": b"", "code_expires_at": later,
               "created_at": later, "expires_at": later}  # fmt: skip
    token = {"kind": "access", "created_at": later, "expires_at": later}
    connection.execute(insert(grants), [{"id": one.id, **granted} for one in made])
    rows = [{"id": one.id, "hash": one.hash, "grant_id": one.id, **token} for one in made]
    connection.execute(insert(tokens), rows)


async def _signed(name: str, key: Any) -> None:
    claims = {"iss": "http://127.0.0.1", "aud": HERE, "sub": "jane", "scope": "tools",
              "exp": int(time.time()) + 900, "jti": "0" * 32}  # fmt: skip
    text = jwt.encode({"alg": name}, claims, key, algorithms=[name])
    rules = jwt.JWTClaimsRegistry(aud={"essential": True, "value": HERE})

    async def check() -> None:
        rules.validate(jwt.decode(text, key, algorithms=[name]).claims)

    print(f"signed, {name:<8}                       {await _least(check):8.1f} µs")


async def _least(check: Callable[[], Awaitable[None]]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.process_time()
        for _ in range(CHECKS):
            await check()
        best = min(best, (time.process_time() - started) / CHECKS * 1e6)
    return best

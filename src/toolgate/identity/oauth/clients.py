"""Who asks for tokens: clients, by registration or by a document of their own."""

import secrets
from dataclasses import dataclass, replace
from typing import Any, Protocol

from sqlalchemy import Connection, insert, select, update

from toolgate.db.engine import Database
from toolgate.db.oauth_tables import clients, sign_ins
from toolgate.gate.audit_records import timestamp
from toolgate.gate.principal import ANONYMOUS
from toolgate.identity.oauth.audit_notes import REGISTERED, Note
from toolgate.identity.oauth.eviction import make_room, network_of
from toolgate.identity.oauth.expiry import delete_expired

DAY = 86400
NEVER_USED_SECONDS = DAY
"""How long a registration is kept that nobody has signed in with."""
UNUSED_SECONDS = 90 * DAY
"""How long one is kept after its last token has ended."""
MAX_NEVER_USED = 1000
"""Strangers make these: past this number some go, never one that was used or is signed in with."""
ON_ITS_WAY = select(sign_ins.c.id).where(sign_ins.c.client_id == clients.c.id).exists()
MAY_GO = clients.c.used_at.is_(None) & ~ON_ITS_WAY
UNKNOWN = "This client is not known here. Let the application register again."


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """An application that wants to act for a person; always a public client."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    uri: str | None = None


class BadClient(ValueError):
    """There is no such client, or what it says of itself cannot be used; fit for a page."""


class ClientDocumentSource(Protocol):
    """Finds what a client says of itself at the address that is its id."""

    async def client(self, client_id: str) -> Client:
        """The client; raise `BadClient` when it cannot be used."""
        ...


def is_document(client_id: str) -> bool:
    """Whether a client's id is the address of a document about it."""
    return client_id.startswith(("https://", "http://"))


class Clients:
    """Registers clients and finds them again."""

    def __init__(self, database: Database, documents: ClientDocumentSource | None = None) -> None:
        self._database = database
        self._documents = documents

    @property
    def reads_documents(self) -> bool:
        """Whether an address may be a client's id."""
        return self._documents is not None

    async def find(self, client_id: str) -> Client:
        """The client with this id; raise `BadClient` when there is none."""
        if is_document(client_id) and self._documents is not None:
            return await self._documents.client(client_id)
        if len(client_id) > 40 or not client_id.isascii() or not client_id.isprintable():
            raise BadClient(UNKNOWN)
        one = select(clients).where(clients.c.id == client_id, clients.c.expires_at > timestamp())
        row = await self._database.read(lambda c: c.execute(one).first(), quick=True)
        if row is None:
            raise BadClient(UNKNOWN)
        return Client(id=row.id, name=row.name, redirect_uris=tuple(row.redirect_uris), uri=row.uri)

    async def register(
        self,
        name: str,
        redirect_uris: tuple[str, ...],
        uri: str | None,
        note: Note,
        *,
        peer: str = "",
    ) -> Client:
        """Keep a new client."""
        client = Client(
            id=f"mcp_{secrets.token_hex(16)}", name=name, redirect_uris=redirect_uris, uri=uri
        )
        row: dict[str, Any] = {
            "id": client.id,
            "name": name,
            "redirect_uris": list(redirect_uris),
            "uri": uri,
            "created_at": timestamp(),
            "expires_at": timestamp(seconds=NEVER_USED_SECONDS),
            "network": network_of(peer),
        }

        def keep(connection: Connection) -> None:
            delete_expired(connection, clients)
            make_room(connection, clients, MAY_GO, MAX_NEVER_USED)
            connection.execute(insert(clients), [row])
            note(connection, REGISTERED, replace(ANONYMOUS, client_id=client.id))

        await self._database.write(keep)
        return client


def extend_client(connection: Connection, client_id: str, seconds: float) -> None:
    """A client in use is kept longer than what it was given; written at most once a day."""
    until = seconds + UNUSED_SECONDS
    connection.execute(
        update(clients)
        .where(clients.c.id == client_id, clients.c.expires_at < timestamp(seconds=until - DAY))
        .values(expires_at=timestamp(seconds=until), used_at=timestamp(), network=None)
    )

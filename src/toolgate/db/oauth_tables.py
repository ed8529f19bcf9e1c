"""Tables of the OAuth server: clients, sign-ins on their way, grants, tokens.

Of codes, tokens and browser secrets only SHA-256 hashes are kept. Every row has an end, and rows
past theirs are deleted, a few at a time, when new ones are made.
"""

from sqlalchemy import JSON, Column, ForeignKey, Index, Integer, LargeBinary, String, Table, Text

from toolgate.db.tables import Time, metadata

clients = Table(
    "oauth_clients",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("name", Text, nullable=False),
    Column("redirect_uris", JSON, nullable=False),
    Column("uri", Text),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time, nullable=False),
    # When a person last allowed it something, or it was given tokens; NULL until then.
    Column("used_at", Time),
    # Where it was registered from, until it is used: of whom there are most, they go first.
    Column("network", Text),
    Index(None, "expires_at"),
    Index(None, "used_at", "created_at"),
)

sign_ins = Table(
    "oauth_sign_ins",
    metadata,
    Column("id", String(32), primary_key=True),
    # The hash of the secret in the cookie of the browser that asked.
    Column("browser", LargeBinary(32), nullable=False),
    Column("asked", JSON, nullable=False),
    # Its client, which is kept meanwhile, and where it was asked from, by which it is counted.
    Column("client_id", Text),
    Column("network", Text),
    # What a provider wants to be told again when the browser is back from it; once somebody has
    # signed in, the hash of the token with which they may decide, and the grant they gave.
    Column("remembered", JSON, nullable=False),
    # Who signed in; JSON null until then.
    Column("subject", JSON, nullable=False),
    Column("misses", Integer, nullable=False),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time, nullable=False),
    Index(None, "expires_at"),
    Index(None, "client_id"),
)

grants = Table(
    "oauth_grants",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("client_id", Text, nullable=False),
    Column("user_id", Text),
    # The key that was signed in with, and a mark of the configured admin key if it was that.
    Column("key_id", String(32)),
    Column("key_mark", LargeBinary(32)),
    Column("scope", Text, nullable=False),
    Column("resource", Text, nullable=False),
    Column("redirect_uri", Text, nullable=False),
    Column("challenge", String(43), nullable=False),
    Column("code", LargeBinary(32), nullable=False),
    Column("code_expires_at", Time, nullable=False),
    Column("code_used_at", Time),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time, nullable=False),
    Column("ended_at", Time),
    Index(None, "expires_at"),
)

tokens = Table(
    "oauth_tokens",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("hash", LargeBinary(32), nullable=False),
    Column("kind", String(8), nullable=False),
    Column(
        "grant_id", String(32), ForeignKey("oauth_grants.id", ondelete="CASCADE"), nullable=False
    ),
    # The refresh token that was exchanged for this one.
    Column("parent_id", String(32)),
    Column("created_at", Time, nullable=False),
    Column("expires_at", Time, nullable=False),
    Column("used_at", Time),
    Column("ended_at", Time),
    Index(None, "grant_id"),
    Index(None, "expires_at"),
)

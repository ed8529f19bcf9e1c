"""Documents get the namespace of their pack: `appdata`, or `backend` for records of sign-ins.

Until now tools wrote and sign-ins read one set of documents. What a sign-in made is told from what
a tool made by its shape: in `users`, with all that a sign-in writes, its own id among it, and a
client id as only sign-ins make them up. Single values may have been changed since, such as
`roles.admin` by an operator. Everything else stays with `appdata`, where `roles.admin` makes nobody
an admin.
"""

import logging
import re
from collections.abc import Iterator
from typing import Any, cast

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"

logger = logging.getLogger(__name__)

TOOLS, SIGN_INS = "appdata", "backend"
PARTS = {"auth", "roles", "subscription", "metadata", "api", "personal"}
CLIENT_ID = re.compile(r"[0-9a-f]{32}")
PAGE = 500
documents = sa.table(
    "documents",
    sa.column("seq", sa.BigInteger),
    sa.column("namespace", sa.Text),
    sa.column("collection", sa.Text),
    sa.column("id", sa.Text),
    sa.column("fields", sa.JSON),
)


def upgrade() -> None:
    """Add the column, and move the records."""
    if op.get_context().dialect.name == "sqlite":
        _make_anew()
    else:
        _alter()
    op.create_index(
        "ix_documents_namespace_collection_seq", "documents", ["namespace", "collection", "seq"]
    )
    for seq, uid, record in _records():
        if of_sign_in(uid, record):
            _move(seq)
            if _says_admin(record):
                logger.warning("User %s stays an admin: the record of a sign-in says so.", uid)
        elif _says_admin(record):
            logger.warning(
                "User %s is no admin any more: the document users/%s is not of a sign-in.", uid, uid
            )


def _alter() -> None:
    tools = sa.Column("namespace", sa.Text, nullable=False, server_default=TOOLS)
    op.add_column("documents", tools)
    op.alter_column("documents", "namespace", server_default=None)
    op.drop_index("ix_documents_collection_seq", "documents")
    op.drop_constraint("uq_documents_collection_id", "documents")
    op.create_unique_constraint(
        "uq_documents_namespace_collection_id", "documents", ["namespace", "collection", "id"]
    )


def _make_anew() -> None:
    """SQLite cannot change a constraint of a table."""
    op.create_table(
        "documents_with_namespace",
        sa.Column("seq", sa.Integer, autoincrement=True, nullable=False),
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("collection", sa.Text, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("fields", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_documents"),
        sa.UniqueConstraint(
            "namespace", "collection", "id", name="uq_documents_namespace_collection_id"
        ),
        sqlite_autoincrement=True,
    )
    op.execute(
        "INSERT INTO documents_with_namespace (seq, namespace, collection, id, fields) "
        f"SELECT seq, '{TOOLS}', collection, id, fields FROM documents ORDER BY seq"
    )
    op.drop_table("documents")
    op.rename_table("documents_with_namespace", "documents")


def _records() -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Every document of the collection `users`."""
    connection, after = op.get_bind(), 0
    page = (
        sa.select(documents.c.seq, documents.c.id, documents.c.fields)
        .where(documents.c.namespace == TOOLS, documents.c.collection == "users")
        .order_by(documents.c.seq)
        .limit(PAGE)
    )
    while rows := connection.execute(page.where(documents.c.seq > after)).all():
        yield from ((row.seq, row.id, row.fields) for row in rows)
        after = rows[-1].seq


def of_sign_in(uid: str, record: dict[str, Any]) -> bool:
    """Whether a sign-in made this record."""
    if not record.keys() >= PARTS or not all(isinstance(record[one], dict) for one in PARTS):
        return False
    client_id = record["api"].get("clientId")
    known = isinstance(client_id, str) and CLIENT_ID.fullmatch(client_id)
    return bool(known) and record["auth"].get("uid") == uid


def _says_admin(record: dict[str, Any]) -> bool:
    roles: Any = record.get("roles")
    return isinstance(roles, dict) and cast("dict[str, Any]", roles).get("admin") is True


def _move(seq: int) -> None:
    moved = sa.update(documents).where(documents.c.seq == seq).values(namespace=SIGN_INS)
    op.get_bind().execute(moved)

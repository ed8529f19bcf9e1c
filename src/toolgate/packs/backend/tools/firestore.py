"""Documents of the application by their paths: read, written, queried."""

import asyncio
import re
import secrets
from typing import Annotated, Any, cast

from pydantic import AfterValidator, Field, RootModel, field_validator, model_validator
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD, TOLD_FORMAT, TOLD_MISSING
from toolgate.gate.context import Context
from toolgate.gate.errors import Conflict
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Route, StoredOutput, Target
from toolgate.packs.backend.document_queries import QueryInput
from toolgate.packs.backend.document_search import find_documents
from toolgate.packs.backend.pack import BACKEND, ROUTES
from toolgate.packs.backend.text_filters import Effort
from toolgate.packs.backend.world import BackendWorld
from toolgate.ports.documents import LETTERS, Fields, Merge, Set
from toolgate.ports.push_ids import push_id
from toolgate.ports.rules import broken_document_rule, broken_path_rule
from toolgate.ports.users import is_of_users, timestamp_record, without_secrets

family = Family("firestore", BACKEND)

TAG = "admin/firestore"
METADATA = "metadata"
NANO_ID_LENGTH = 21
PLACEHOLDERS = ("{pushId}", "{nanoId}")
PLACEHOLDER = re.compile(r"\{[^{}]*\}")
MAX_PATH = 10_000
MAX_QUERIES = 20
MAX_PATTERNS = 30
"""Of all queries of a call; each is compiled."""


def _document_path(path: str) -> str:
    """A path as it is stored: without a slash at either end."""
    plain = path.removeprefix("/").removesuffix("/")
    if problem := broken_path_rule(plain, of_document=True):
        raise PydanticCustomError(TOLD_FORMAT, "path {problem}", {"problem": problem})
    return plain


DocumentPath = Annotated[str, AfterValidator(_document_path)]


class DocumentRef(Input):
    """Which document."""

    path: DocumentPath = Field(
        max_length=MAX_PATH,
        description="Path of the document, such as `users/UID` or `orders/1/items/2`.",
    )

    @model_validator(mode="before")
    @classmethod
    def _told_without_path(cls, values: Any) -> Any:
        if isinstance(values, dict) and not cast("dict[str, Any]", values).get("path", None):
            raise PydanticCustomError(TOLD_MISSING, "Path parameter required.")
        return cast("Any", values)


class FoundDocument(RootModel[dict[str, Any]], Output):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A document's fields; none for one that is not there."""


@family.tool(
    "firestore_read",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Read a Firestore document by path",
    route=Route(f"{ROUTES}/admin/firestore"),
    example={"path": "users/_test-basic"},
)
async def firestore_read(ctx: Context[BackendWorld], args: DocumentRef) -> FoundDocument:
    """Read one document by its path. A document that does not exist is an empty object.

    Use `firestore_query` when the path is not known. Private keys of users are left out.
    """
    collection, _, document_id = args.path.rpartition("/")
    fields = await ctx.world.documents.get(collection, document_id) or {}
    return FoundDocument.model_construct(as_shown(args.path, fields))


class WrittenDocument(DocumentRef):
    """What to store, and where."""

    path: DocumentPath = Field(
        max_length=MAX_PATH,
        description="Path of the document, such as `users/UID`. `{pushId}` in it becomes a new id "
        "that sorts by time, `{nanoId}` a random one.",
    )
    document: dict[str, Any] = Field(description="The document's fields.")
    merge: bool = Field(
        default=True,
        description="Whether fields that are not given stay as they are, also inside of maps; "
        "else the document is replaced as a whole.",
    )

    @field_validator("path")
    @classmethod
    def _known_placeholders(cls, path: str) -> str:
        for given in PLACEHOLDER.findall(path):
            if given not in PLACEHOLDERS:
                told = "path has {given}, which stands for nothing. Valid options: {valid}"
                context = {"given": given[:50], "valid": ", ".join(PLACEHOLDERS)}
                raise PydanticCustomError(TOLD_FORMAT, told, context)
        return path

    @field_validator("document")
    @classmethod
    def _storable(cls, document: dict[str, Any]) -> dict[str, Any]:
        if problem := broken_document_rule(document):
            raise PydanticCustomError(TOLD, "document {problem}", {"problem": problem})
        return document


class WrittenPath(Output):
    """Where the document is."""

    path: str = Field(description="The document's path, with the ids that were made for it.")


@family.tool(
    "firestore_write",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.DOCUMENTS],
    idempotent=True,
    title="Write/merge a Firestore document",
    route=Route(f"{ROUTES}/admin/firestore", method="POST"),
    example={"path": "orders/{pushId}", "document": {"item": "book", "paid": True}},
)
async def firestore_write(ctx: Context[BackendWorld], args: WrittenDocument) -> WrittenPath:
    """Write a document at a path: its fields are merged into what is there, or replace it.

    The time of the write is stored beside them, under `metadata`. To repeat a call is safe,
    except with `{pushId}` or `{nanoId}` in the path: each makes another document.
    """
    path = _with_new_ids(args.path)
    collection, _, document_id = path.rpartition("/")
    fields = _stamped(args.document)
    kind = Merge if args.merge else Set
    # Neither can meet one: with it, the write and its commit go one way together.
    never = Conflict(f"{path} was changed meanwhile. Try again.")
    await ctx.world.documents.write(ctx.tx, kind(collection, document_id, fields), conflict=never)
    return WrittenPath(path=path)


class Queries(Input):
    """What to look for."""

    queries: list[QueryInput] = Field(
        max_length=MAX_QUERIES, description="Queries, which are done at the same time."
    )

    @field_validator("queries")
    @classmethod
    def _few_patterns(cls, queries: list[QueryInput]) -> list[QueryInput]:
        if sum(len(one.filter or ()) for one in queries) > MAX_PATTERNS:
            raise PydanticCustomError(
                TOLD,
                "queries must have at most {most} patterns (filter) together: call again for more",
                {"most": MAX_PATTERNS},
            )
        return queries


class FoundAtPath(Output):
    """A document and where it is."""

    path: str = Field(description="The document's path.")
    data: dict[str, Any] = Field(description="The document's fields.")


class FoundDocuments(StoredOutput):
    """What the queries found, one after the other; each document once."""

    results: list[FoundAtPath] = Field(description="The documents, each with its path.")


@family.tool(
    "firestore_query",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Query a collection with where/orderBy/limit",
    route=Route(f"{ROUTES}/admin/firestore/query", method="POST", body="results"),
    example={
        "queries": [
            {
                "collection": "users",
                "where": [{"field": "subscription.status", "operator": "==", "value": "active"}],
                "limit": 10,
            }
        ]
    },
)
async def firestore_query(ctx: Context[BackendWorld], args: Queries) -> FoundDocuments:
    """Find documents by their fields, in one or more collections at once.

    Values match only values of their own type. Use `firestore_read` when the path is known.
    Private keys of users are left out, and nothing can be asked about them.
    """
    store, effort = ctx.world.documents, Effort()
    each = [
        find_documents(store, one, f"queries[{at}]", effort) for at, one in enumerate(args.queries)
    ]
    found: dict[str, Fields] = {}
    for some in await asyncio.gather(*each):
        for path, fields in some:
            found.setdefault(path, fields)
    return FoundDocuments.model_construct(
        results=[{"path": path, "data": as_shown(path, one)} for path, one in found.items()]
    )


def as_shown(path: str, fields: Fields) -> Fields:
    """A document as it leaves the store."""
    return without_secrets(fields) if is_of_users(path) else fields


def _with_new_ids(path: str) -> str:
    while "{pushId}" in path:
        path = path.replace("{pushId}", push_id(), 1)
    while "{nanoId}" in path:
        path = path.replace("{nanoId}", _nano_id(), 1)
    return path


def _nano_id() -> str:
    return "".join(secrets.choice(f"{LETTERS}-") for _ in range(NANO_ID_LENGTH))


def _stamped(document: Fields) -> Fields:
    """The fields and the time of the write, over what else they say about themselves."""
    given = document.get(METADATA)
    about: Fields = dict(cast(Fields, given)) if isinstance(given, dict) else {}
    return {**document, METADATA: {**about, "updated": timestamp_record(), "tag": TAG}}

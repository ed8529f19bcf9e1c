"""Data tools: read, query and create documents."""

from collections.abc import Sequence
from enum import StrEnum
from operator import itemgetter
from typing import Annotated, Any, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    ValidationInfo,
    field_validator,
)
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD, TOLD_FORMAT
from toolgate.gate.context import Context
from toolgate.gate.errors import Conflict, NotFound
from toolgate.gate.fields import Whole
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Target
from toolgate.packs.appdata.collections import Collection
from toolgate.packs.appdata.pack import (
    APPDATA,
    CollectionName,
    DocumentId,
    WritableName,
    collections_of,
    shorten,
)
from toolgate.packs.appdata.world import AppDataWorld
from toolgate.ports import documents as ports
from toolgate.ports.documents import MAX_IN_VALUES, Create, Filter, StoredDocument, new_id
from toolgate.ports.ordering import RANGES
from toolgate.ports.rules import (
    broken_document_rule,
    broken_field_rule,
    broken_value_rule,
)

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
MAX_FILTERS = 30

family = Family("documents", APPDATA)


class Operator(StrEnum):
    """The comparisons a filter may use."""

    EQUAL = ports.Operator.EQUAL.value
    NOT_EQUAL = ports.Operator.NOT_EQUAL.value
    LESS = ports.Operator.LESS.value
    LESS_OR_EQUAL = ports.Operator.LESS_OR_EQUAL.value
    GREATER = ports.Operator.GREATER.value
    GREATER_OR_EQUAL = ports.Operator.GREATER_OR_EQUAL.value
    IN = ports.Operator.IN.value
    ARRAY_CONTAINS = ports.Operator.ARRAY_CONTAINS.value


OPERATORS = tuple(one.value for one in Operator)
ORDERED = {Operator.LESS, Operator.LESS_OR_EQUAL, Operator.GREATER, Operator.GREATER_OR_EQUAL}


class Document(RootModel[dict[str, Any]], Output):  # pyright: ignore[reportIncompatibleMethodOverride]
    """A document's fields, with its id beside them."""

    model_config = ConfigDict(
        json_schema_extra={
            "properties": {"id": {"type": "string", "description": "The document's id."}},
            "required": ["id"],
        }
    )


class DocumentRef(Input):
    """Which document."""

    collection: CollectionName
    document_id: DocumentId = Field(description="The document's id.")


@family.tool(
    "get_document",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Get a document",
    example={"collection": "users", "document_id": "abc123"},
)
async def get_document(ctx: Context[AppDataWorld], args: DocumentRef) -> Document:
    """Fetch one document of a collection by its id.

    Use `query_collection` when the id is not known, and `describe_collection` for the fields.
    """
    fields = await ctx.world.documents.get(args.collection, args.document_id)
    if fields is None:
        raise NotFound(f"Document {args.document_id} not found in {args.collection}")
    return _document(args.document_id, fields)


def _operator(value: object) -> object:
    if value not in OPERATORS:
        raise PydanticCustomError(TOLD, "Invalid operator: '{value}'", {"value": shorten(value)})
    return Operator(value)


def _field(value: str) -> str:
    if problem := broken_field_rule(value):
        raise PydanticCustomError(TOLD_FORMAT, "field {problem}", {"problem": problem})
    return value


class Condition(Input):
    """One condition of a query."""

    field: Annotated[str, AfterValidator(_field)] = Field(
        min_length=1, description="Field to compare; dots reach into maps, as in `address.city`."
    )
    operator: Annotated[Operator, BeforeValidator(_operator)] = Field(
        description="`==`, `!=`, `<`, `<=`, `>`, `>=`, `in` (value is a list of at most 30) "
        "or `array-contains`. Values match only values of their own type."
    )
    value: Any = Field(description="What to compare with: any JSON value.")

    @field_validator("value")
    @classmethod
    def _comparable(cls, value: Any, info: ValidationInfo) -> Any:
        operator = info.data.get("operator")
        if operator is Operator.IN and not _is_in_list(value):
            problem = f"must be a list of 1 to {MAX_IN_VALUES} values for operator 'in'"
        elif operator is Operator.IN:
            problem = next(filter(None, map(broken_value_rule, value)), None)
        elif value is None and operator in ORDERED:
            problem = f"must not be null for operator '{operator}'"
        else:
            problem = broken_value_rule(value)
        if problem:
            raise PydanticCustomError(TOLD, "value {problem}", {"problem": problem})
        return value


def _is_in_list(value: Any) -> bool:
    return isinstance(value, list) and 1 <= len(cast("list[Any]", value)) <= MAX_IN_VALUES


class Query(Input):
    """What to look for."""

    collection: CollectionName
    filters: list[Condition] | None = Field(
        default=None,
        max_length=MAX_FILTERS,
        description="Conditions that must all hold; none means every document.",
    )
    limit: Whole = Field(
        default=DEFAULT_LIMIT,
        ge=1,
        description=f"How many documents at most; more than {MAX_LIMIT} means {MAX_LIMIT}.",
    )


class QueryResult(Output):
    """The documents that passed, in a stable order."""

    collection: str = Field(description="The collection that was queried.")
    count: int = Field(description="How many documents are in `data`.")
    limit: int = Field(description="The limit that was applied.")
    data: list[Document] = Field(description="The documents, each with its id.")


@family.tool(
    "query_collection",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Query a collection",
    example={
        "collection": "apps",
        "filters": [{"field": "status", "operator": "==", "value": "active"}],
        "limit": 10,
    },
)
async def query_collection(ctx: Context[AppDataWorld], args: Query) -> QueryResult:
    """Find documents of a collection that pass all filters.

    Use `get_document` when the id is known, and `describe_collection` for field names and types.
    """
    limit = min(args.limit, MAX_LIMIT)
    filters = [
        Filter(one.field, ports.Operator(one.operator), one.value) for one in args.filters or ()
    ]
    found = await ctx.world.documents.query(ports.Query(args.collection, filters, limit=limit))
    return QueryResult(
        collection=args.collection,
        count=len(found),
        limit=limit,
        data=[_document(one.id, one.fields) for one in _presented(found, filters, limit)],
    )


def _presented(
    found: Sequence[StoredDocument], filters: Sequence[Filter], limit: int
) -> Sequence[StoredDocument]:
    """In the order of creation, where these are all and no filter asks for another order.

    Those that a limit has cut stay in the order in which it cut them.
    """
    if len(found) == limit or any(one.operator in RANGES for one in filters):
        return found
    numbered = [(one.number, one) for one in found if one.number is not None]
    return [one for _, one in sorted(numbered, key=itemgetter(0))] or found


class NewDocument(Input):
    """What to store."""

    collection: WritableName
    data: dict[str, Any] = Field(description="The document's fields.")
    document_id: DocumentId | None = Field(
        default=None, description="The id to use; generated if omitted."
    )

    @field_validator("data")
    @classmethod
    def _storable(cls, data: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
        collection = info.data.get("collection")
        problem = broken_document_rule(data)
        if not problem and collection:
            problem = _broken_required_rule(data, collections_of(info).by_name[collection])
        if problem:
            raise PydanticCustomError(TOLD, "data {problem}", {"problem": problem})
        return data


class Created(Output):
    """The new document's id."""

    id: str = Field(description="The new document's id.")
    success: bool = Field(description="Always true: a failure returns `error`.")


@family.tool(
    "create_document",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.DOCUMENTS],
    title="Create a document",
    example={
        "collection": "apps",
        "document_id": "my-new-app",
        "data": {"name": "My New App", "status": "beta", "category": "community"},
    },
)
async def create_document(ctx: Context[AppDataWorld], args: NewDocument) -> Created:
    """Create a new document in a collection. An existing document is never overwritten.

    Needs the setting MCP_ENABLE_WRITES=true. Use `describe_collection` for the expected fields.
    """
    # `id` is the document's name, not one of its fields: every read puts it beside them.
    fields = {name: value for name, value in args.data.items() if name != "id"}
    document_id = args.document_id or new_id()
    taken = Conflict(
        f"Document {document_id} already exists in {args.collection}. "
        "Choose another document_id, or leave it out to have one made."
    )
    created = Create(args.collection, document_id, fields)
    await ctx.world.documents.write(ctx.tx, created, conflict=taken)
    return Created(id=document_id, success=True)


def _broken_required_rule(data: dict[str, Any], collection: Collection) -> str | None:
    """The rule a document breaks that lacks what each of its collection has."""
    required = [one for one in collection.fields if one.required and one.name != "id"]
    if missing := ", ".join(repr(one.name) for one in required if one.name not in data):
        return f"must have {missing} (required in {collection.name})"
    nulls = (one.name for one in required if data[one.name] is None and not one.nullable)
    if names := ", ".join(map(repr, nulls)):
        return f"must have a value for {names}, not null (required in {collection.name})"
    return None


def _document(document_id: str, fields: dict[str, Any]) -> Document:
    return Document.model_construct({"id": document_id} | fields | {"id": document_id})

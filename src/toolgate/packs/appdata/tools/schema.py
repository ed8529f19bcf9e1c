"""Schema tools: the data model, without asking any store."""

from functools import lru_cache
from urllib.parse import quote

from pydantic import Field

from toolgate.gate.context import Context
from toolgate.gate.errors import NotFound
from toolgate.gate.principal import Role
from toolgate.gate.resources import Resource
from toolgate.gate.tool import Effect, Family, Input, NoArguments, Output
from toolgate.packs.appdata.collections import Collection, Collections
from toolgate.packs.appdata.collections import Field as CollectionField
from toolgate.packs.appdata.pack import APPDATA, Id
from toolgate.packs.appdata.world import AppDataWorld

family = Family("schema", APPDATA)


class Summary(Output):
    """One collection in a line."""

    name: str = Field(description="The collection's name.")
    description: str = Field(description="What it holds.")
    document_type: str = Field(description="The type of its documents.")
    owner: str = Field(description="Which part of the application owns it.")
    field_count: int = Field(description="How many fields a document has.")


class Summaries(Output):
    """Every collection."""

    collections: list[Summary] = Field(description="The collections, in a fixed order.")


@family.tool("list_collections", role=Role.PUBLIC, effect=Effect.READ, title="List the collections")
async def list_collections(ctx: Context[AppDataWorld], args: NoArguments) -> Summaries:
    """List all collections: name, description, document type, owner and number of fields.

    Works without a connection to the store. Use `describe_collection` for the fields of one.
    """
    return summaries(ctx.world.collections)


@lru_cache(maxsize=8)
def summaries(collections: Collections) -> Summaries:
    """Every collection in a line; made once for each file."""
    every = [
        Summary(
            name=one.name,
            description=one.description,
            document_type=one.document_type,
            owner=one.owner,
            field_count=len(one.fields),
        )
        for one in collections.every
    ]
    return Summaries(collections=every)


class CollectionRef(Input):
    """Which collection."""

    collection_name: Id = Field(description="The collection to describe.")


class FieldSchema(Output):
    """One field."""

    type: str = Field(description="The field's type, in TypeScript's notation.")
    description: str = Field(description="What the field holds.")


class CollectionSchema(Output):
    """A collection and its fields."""

    collection: str = Field(description="The collection's name.")
    description: str = Field(description="What it holds.")
    document_type: str = Field(description="The type of its documents.")
    owner: str = Field(description="Which part of the application owns it.")
    fields: dict[str, FieldSchema] = Field(description="Every field by name.")


@family.tool(
    "describe_collection",
    role=Role.PUBLIC,
    effect=Effect.READ,
    title="Describe a collection",
    example={"collection_name": "users"},
)
async def describe_collection(ctx: Context[AppDataWorld], args: CollectionRef) -> CollectionSchema:
    """Describe one collection with the type and meaning of every field.

    Works without a connection to the store. Use `list_collections` for the names.
    """
    collections = ctx.world.collections.by_name
    collection = collections.get(args.collection_name)
    if collection is None:
        raise NotFound(
            f"Collection '{args.collection_name}' not found",
            available_collections=list(collections),
        )
    return CollectionSchema(
        collection=collection.name,
        description=collection.description,
        document_type=collection.document_type,
        owner=collection.owner,
        fields={
            one.name: FieldSchema(type=one.type, description=field_description(one))
            for one in collection.fields
        },
    )


def field_description(field: CollectionField) -> str:
    """What a field holds, and that it is required where it is."""
    return f"{field.description} (required)".lstrip() if field.required else field.description


ALL = Resource(
    uri="cybereco://collections",
    name="collections",
    title="Collections",
    description="All collections of the application.",
    tool="list_collections",
    arguments={},
)


def resources(collections: Collections) -> tuple[Resource, ...]:
    """The list of collections, and the schema of each."""
    return (ALL, *(_schema_of(one) for one in collections.every))


def _schema_of(collection: Collection) -> Resource:
    return Resource(
        uri=f"cybereco://schema/{quote(collection.name, safe='')}",
        name=f"schema-{collection.name}",
        title=f"Schema of {collection.name}",
        description=collection.description,
        tool="describe_collection",
        arguments={"collection_name": collection.name},
    )

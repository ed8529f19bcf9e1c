"""Small services of the server itself."""

import uuid
from importlib.metadata import version
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD, TOLD_FORMAT
from toolgate.gate.context import Context
from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.gate.fields import whole
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, NoArguments, Output, Route
from toolgate.packs.backend.pack import BACKEND, ROUTES
from toolgate.packs.backend.world import BackendWorld
from toolgate.ports.users import timestamp_record

family = Family("operations", BACKEND)

VERSIONS = ("4", "5")
VERSION_SCHEMA: dict[str, Any] = {
    "anyOf": [
        {"type": "string", "enum": ["5", "4", "v5", "v4"]},
        {"type": "integer", "enum": [5, 4]},
    ]
}
MAX_TEXT = 10_000


class Health(Output):
    """How the server is."""

    status: str = Field(description="Always `healthy`: otherwise the server does not answer.")
    timestamp: str = Field(description="The server's time, ISO 8601.")
    environment: str = Field(description="`production`, `development` or `testing`.")
    projectId: str = Field(description="The id of the application's project.")  # noqa: N815
    version: str = Field(description="The application's version; toolgate's where none is set.")
    bemVersion: str = Field(description="The version of toolgate.")  # noqa: N815
    testExtendedMode: bool = Field(  # noqa: N815
        description="Always false: no mode of toolgate is for tests alone."
    )


@family.tool(
    "health_check",
    role=Role.PUBLIC,
    effect=Effect.READ,
    title="Check server health",
    route=Route(f"{ROUTES}/test/health"),
)
async def health_check(ctx: Context[BackendWorld], args: NoArguments) -> Health:
    """Check that the server answers, and which version it is."""
    settings, ours = ctx.world.settings, version("toolgate")
    return Health(
        status="healthy",
        timestamp=timestamp_record()["timestamp"],
        environment=settings.environment,
        projectId=settings.project,
        version=settings.version or ours,
        bemVersion=ours,
        testExtendedMode=False,
    )


def _version(value: object) -> object:
    text = str(whole(value)).lower().removeprefix("v")
    if isinstance(value, bool) or text not in VERSIONS:
        told = "v{given} is not a valid version. Valid options: {valid}"
        context = {"given": text[:20], "valid": ", ".join(VERSIONS)}
        raise PydanticCustomError(TOLD, told, context)
    return text


def _namespace(value: str) -> str:
    try:
        return str(uuid.UUID(value))
    except ValueError:
        raise PydanticCustomError(TOLD_FORMAT, "namespace must be a UUID") from None


class UuidRequest(Input):
    """Which UUID."""

    name: str | None = Field(
        default=None, max_length=MAX_TEXT, description="What a version 5 UUID is made from."
    )
    input: str | None = Field(
        default=None, max_length=MAX_TEXT, description="Used if `name` is not given."
    )
    version: Annotated[str, BeforeValidator(_version), WithJsonSchema(VERSION_SCHEMA)] = Field(
        default="5",
        description="`5` (from a name, always the same) or `4` (random), as a text or a number.",
    )
    namespace: Annotated[str, AfterValidator(_namespace)] | None = Field(
        default=None,
        description="Namespace of a version 5 UUID, a UUID; default: the setting "
        "`backend.namespace`.",
    )


class Uuid(Output):
    """A UUID."""

    uuid: str = Field(description="The UUID.")


@family.tool(
    "generate_uuid",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Generate a UUID",
    route=Route(f"{ROUTES}/general/uuid", method="POST"),
    example={"name": "https://example.com/"},
)
async def generate_uuid(ctx: Context[BackendWorld], args: UuidRequest) -> Uuid:
    """Generate a UUID: version 5 from a name, always the same for a name, or a random one."""
    if args.version == "4":
        return Uuid(uuid=str(uuid.uuid4()))
    name = args.name or args.input
    if not name:
        message = "You must provide a name to hash for UUID v5."
        raise InvalidArguments([Problem("name", "required", message)])
    namespace = uuid.UUID(args.namespace) if args.namespace else ctx.world.uuid_namespace
    return Uuid(uuid=str(uuid.uuid5(namespace, name)))

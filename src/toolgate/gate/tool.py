"""How a tool is declared: once, next to its handler, as a value."""

import inspect
import re
from collections.abc import Callable, Collection, Coroutine, Mapping
from copy import copy
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Generic, NamedTuple, Self, TypeVar, cast, get_type_hints

from toolgate.gate.access_checks import AccessCheck
from toolgate.gate.attachments import Attachment, BadAttachment, attachment_field
from toolgate.gate.attributes import Attribute, words
from toolgate.gate.context import Context, World
from toolgate.gate.dialects import Dialect
from toolgate.gate.errors import GateError
from toolgate.gate.from_request import FromRequest
from toolgate.gate.path_templates import VARIABLE
from toolgate.gate.principal import Role
from toolgate.gate.schemas import input_schema, output_schema, without
from toolgate.gate.scope import MakeNotFound, Scope, scope_of
from toolgate.gate.tool_models import Input, NoArguments, Output, StoredOutput

__all__ = [
    "NAME",
    "OF_TOOL",
    "USUAL",
    "BadDeclaration",
    "Effect",
    "Family",
    "Handler",
    "In",
    "Input",
    "NoArguments",
    "Out",
    "Output",
    "Pack",
    "Route",
    "StoredOutput",
    "Target",
    "Tool",
    "ToolLimits",
]

NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


class Effect(StrEnum):
    """What calling the tool does to the world."""

    READ = "read"
    WRITE = "write"
    DESTROY = "destroy"


class Target(StrEnum):
    """Where a tool that writes leaves its traces."""

    DOCUMENTS = "documents"
    TREE = "tree"
    """The pack's tree of JSON by path."""
    TABLES = "tables"
    """Tables of its own pack."""
    BLOBS = "blobs"
    """Blobs of its own pack that rows of these tables name: one without its row is nothing."""
    OUTSIDE = "outside"
    """Beyond our databases: mail, money, another server."""


In = TypeVar("In", bound=Input)
Out = TypeVar("Out", bound=Output)
Handler = Callable[[Context[World], In], Coroutine[Any, Any, Out]]


@dataclass(frozen=True, slots=True)
class Route:
    """A tool's own address over HTTP, beside `POST /v1/tools/{name}`."""

    path: str
    """With `{argument}` for arguments that are part of the path."""
    method: str = "GET"
    body: str | None = None
    """The field of the answer that is the whole body here; all of it, unless named."""

    @property
    def shape(self) -> str:
        """The path without the names in it: what a request can tell apart."""
        return VARIABLE.sub("{}", self.path)


class ToolLimits(NamedTuple):
    """What one call of a tool may take; settings may allow less, never more."""

    seconds: float | None = None
    body_bytes: int | None = None
    """Largest arguments, as JSON."""
    result_bytes: int | None = None
    slow: bool = False
    """Waits for something that takes long: it has turns of its own, may report progress, and is
    stopped when its client goes away. It should write to the database last: from the first
    statement on, other writes wait for it."""


USUAL = ToolLimits()
"""What the settings say."""


@dataclass(frozen=True, slots=True)
class Pack:
    """Tools that belong together and speak one dialect."""

    name: str
    dialect: Dialect
    summary: str


@dataclass(frozen=True, kw_only=True)
class Tool(Generic[In, Out, World]):
    """One operation, reachable on every transport."""

    name: str
    pack: Pack
    family: str
    title: str
    description: str
    input: type[In]
    output: type[Out]
    role: Role
    effect: Effect
    idempotent: bool
    open_world: bool
    example: Mapping[str, Any]
    route: Route | None = None
    writes: frozenset[Target] = frozenset()
    """What it touches; empty for a tool that only reads."""
    writes_if: Callable[[In], bool] | None = None
    """Of a tool that reads: the arguments with which it writes."""
    limits: ToolLimits = USUAL
    handler: Handler[World, In, Out]
    world: Any = None
    """The ports of its pack, once the tool is bound."""
    atomic: bool = True
    """Whether all it writes joins one transaction with its audit row."""
    from_request: FromRequest[World] | None = None
    """The argument that a request to its route fills in."""
    access: AccessCheck[World] | None = None
    """Its pack's own say on a call."""
    not_found: str | MakeNotFound | None = None
    """What it raises for an id that does not exist; said where an argument is a scope id."""
    scope: Scope | None = field(init=False, default=None)
    """The scope ids among its arguments."""
    attachment_field: str | None = field(init=False, default=None)
    """The field of its answer that is an attachment."""

    def __post_init__(self) -> None:
        """Find scope ids and an attachment once, and refuse what could not be enforced."""
        object.__setattr__(self, "scope", scope_of(self.name, self.input, self.not_found))
        try:
            attachment = self._find_attachment_field()
        except BadAttachment as problem:
            raise BadDeclaration(f"{self.name} {problem}.") from None
        if attachment and self.effect is not Effect.READ:
            conflict = f"{self.name} writes, and an attachment is fetched by calling a tool again"
            raise BadDeclaration(f"{conflict}: hand it over by a tool that reads.")
        object.__setattr__(self, "attachment_field", attachment)

    def _find_attachment_field(self) -> str | None:
        return attachment_field(self.output)

    def bind(
        self,
        world: World,
        separate: frozenset[Target],
        from_request: FromRequest[World] | None,
        access: AccessCheck[World] | None = None,
    ) -> Self:
        """The tool with the ports it uses; what it writes to a target of `separate` cannot join."""
        if from_request and (
            self.route is None or from_request.argument not in self.input.model_fields
        ):
            from_request = None
        bound = copy(self)  # what is declared has been checked: it takes half of a start
        changes = {
            "world": world,
            "atomic": not self.writes & separate,
            "from_request": from_request,
            "access": access,
        }
        for name, value in changes.items():
            object.__setattr__(bound, name, value)
        return bound

    @cached_property
    def as_write(self) -> Self:
        """A tool that reads, with arguments that make it write."""
        writing = copy(self)
        vars(writing).pop("shape", None)  # what policy looks at differs in the effect
        object.__setattr__(writing, "effect", Effect.WRITE)
        return writing

    def read(self, arguments: dict[str, Any]) -> In:
        """The typed arguments; raises Pydantic's error, or `InvalidArguments`.

        Validators find the tool's world in `info.context`.
        """
        return self.input.__pydantic_validator__.validate_python(arguments, context=self.world)

    @cached_property
    def shape(self) -> tuple[Any, ...]:
        """All that policy looks at; tools of one shape get the same decisions."""
        return tuple(one.value(self) for one in OF_TOOL.values())

    @property
    def namespace(self) -> str:
        """`db` for `db.task.get`; the name itself where there is no dot."""
        return self.name.partition(".")[0]

    @property
    def alias(self) -> str:
        """The name for clients that refuse dots."""
        return self.name.replace(".", "_")

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments."""
        return input_schema(self.input)

    @cached_property
    def output_schema(self) -> dict[str, Any]:
        """JSON Schema of a good answer, as it goes over the wire."""
        return self.pack.dialect.success_schema(output_schema(self.output))

    @cached_property
    def linked_output_schema(self) -> dict[str, Any]:
        """The same where an attachment is a link beside the answer."""
        if self.attachment_field is None:
            return self.output_schema
        rest = without(output_schema(self.output), self.attachment_field)
        return self.pack.dialect.success_schema(rest)

    def attachment_of(self, answer: Any) -> Attachment | None:
        """What an answer hands over in the field for it."""
        return None if self.attachment_field is None else getattr(answer, self.attachment_field)

    @property
    def annotations(self) -> dict[str, Any]:
        """MCP's hints for clients, derived from the effect."""
        return {
            "title": self.title,
            "readOnlyHint": self.effect is Effect.READ,
            "destructiveHint": self.effect is Effect.DESTROY,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }

    @property
    def more_fields(self) -> Mapping[str, Any]:
        """What a listing over MCP has besides."""
        return {}


OF_TOOL: dict[str, Attribute[Tool[Any, Any, Any]]] = {
    "name": Attribute("String", lambda tool: tool.name, "the tool's name"),
    "namespace": Attribute(
        "String", lambda tool: tool.namespace, "the part of the name before the first dot"
    ),
    "pack": Attribute("String", lambda tool: tool.pack.name, "the pack it belongs to"),
    "family": Attribute("String", lambda tool: tool.family, "the family within the pack"),
    "role": Attribute(
        "String", lambda tool: tool.role.value, "the role that permits it", words(Role)
    ),
    "effect": Attribute("String", lambda tool: tool.effect.value, "what it does", words(Effect)),
    "open_world": Attribute(
        "Bool", lambda tool: tool.open_world, "whether it reaches beyond the application"
    ),
}
"""What policy looks at."""


class BadDeclaration(TypeError):
    """A tool's declaration contradicts itself."""


Member = TypeVar("Member", bound=StrEnum)


def _member(tool: str, field: str, kind: type[Member], value: str) -> Member:
    """The value itself, or the one that a plain text names."""
    try:
        return kind(value)
    except ValueError:
        options = ", ".join(f"{kind.__name__}.{one.name}" for one in kind)
        raise BadDeclaration(f"{tool}: {field} must be one of: {options}.") from None


def _model(tool: str, what: str, found: Any, kind: type[Any]) -> Any:
    """The model that a handler is annotated with."""
    if isinstance(found, type) and issubclass(found, kind):
        return cast("Any", found)
    raise BadDeclaration(f"{tool}: annotate {what} with a class that is an {kind.__name__}.")


@dataclass(slots=True)
class Family:
    """A group of tools inside a pack: one module."""

    name: str
    pack: Pack
    tools: list[Tool[Any, Any, Any]] = field(default_factory=list[Tool[Any, Any, Any]])

    def tool(
        self,
        name: str,
        *,
        role: Role,
        effect: Effect,
        title: str,
        writes: Collection[Target] = (),
        idempotent: bool = False,
        open_world: bool = False,
        seconds: float | None = None,
        body_bytes: int | None = None,
        result_bytes: int | None = None,
        slow: bool = False,
        example: Mapping[str, Any] | None = None,
        route: Route | None = None,
        writes_if: Callable[[In], bool] | None = None,
        not_found: str | Callable[[In], GateError] | None = None,
        note: str = "",
    ) -> Callable[[Handler[World, In, Out]], Tool[In, Out, World]]:
        """Declare the decorated handler as a tool of this family.

        Its docstring is the description. `note` ends it, with what is derived: numbers of limits.
        """
        if not NAME.fullmatch(name):
            raise BadDeclaration(
                f"{name!r} is not a valid tool name: use letters, digits, `_`, `.` and `-`."
            )
        role, effect = _member(name, "role", Role, role), _member(name, "effect", Effect, effect)
        writes = frozenset(_member(name, "writes", Target, one) for one in writes)
        if seconds is not None and seconds <= 0:
            raise BadDeclaration(f"{name}: seconds must be more than 0.")
        if bool(writes) == (effect is Effect.READ and writes_if is None):
            message = "reads, so it writes nothing" if writes else "writes: say what (`writes=`)"
            raise BadDeclaration(f"{name} {message}.")
        if Target.BLOBS in writes and Target.TABLES not in writes:
            raise BadDeclaration(
                f"{name}: a row names its blob, so writes needs Target.TABLES too."
            )

        def declare(handler: Handler[World, In, Out]) -> Tool[In, Out, World]:
            if not inspect.iscoroutinefunction(handler):
                raise BadDeclaration(f"{name}: its handler must be `async def`.")
            if not (handler.__doc__ or "").strip():
                raise BadDeclaration(f"{name}: its handler needs a docstring, the description.")
            hints = get_type_hints(handler)
            tool = Tool(
                name=name,
                pack=self.pack,
                family=self.name,
                title=title,
                description="\n\n".join(
                    part for part in (inspect.cleandoc(handler.__doc__ or ""), note) if part
                ),
                input=_model(name, "args", hints.get("args"), Input),
                output=_model(name, "its result", hints.get("return"), Output),
                role=role,
                effect=effect,
                idempotent=idempotent or effect is Effect.READ,
                open_world=open_world,
                example=example or {},
                route=route,
                writes=writes,
                writes_if=writes_if,
                limits=ToolLimits(seconds, body_bytes, result_bytes, slow),
                handler=handler,
                not_found=not_found,
            )
            self.tools.append(tool)
            return tool

        return declare

"""How a user declares tools: values in a list, or functions with a decorator."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Required, TypedDict, Unpack

Handler = Callable[..., Awaitable[Any]]
RoleName = Literal["public", "user", "admin"]
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


class Common(TypedDict, total=False):
    """What every tool of one's own may say of itself."""

    title: str
    role: RoleName
    annotations: Mapping[str, Any]
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any]
    inputSchema: Mapping[str, Any]
    outputSchema: Mapping[str, Any]
    _meta: Mapping[str, Any]
    icons: list[Mapping[str, Any]]


class RouteFields(Common, total=False):
    """What a route tool says of itself."""

    name: Required[str]
    description: Required[str]
    path: Required[str]
    method: Method
    parameters: Mapping[str, Any]


class HandlerFields(Common, total=False):
    """What a handler says of itself; name and description are the function's unless given."""

    name: str
    description: str
    seconds: float
    slow: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """One tool as the user wrote it, not checked yet."""

    fields: Mapping[str, Any]
    line: int
    handler: Handler | None = None
    lines: Mapping[str, int] = field(default_factory=dict[str, int])
    """Where single keys stand, if that is known."""

    def line_of(self, key: str | None) -> int:
        """The line of a key, else of the whole entry."""
        return self.lines.get(key, self.line) if key else self.line

    def rename(self, key: str, to: str) -> "Entry":
        """The same entry with a key under its other name."""
        fields = {to if one == key else one: value for one, value in self.fields.items()}
        lines = {to if one == key else one: line for one, line in self.lines.items()}
        return Entry(fields, self.line, self.handler, lines)

    @property
    def label(self) -> str:
        """How messages call it."""
        name = self.fields.get("name")
        return name if isinstance(name, str) and name else "this tool"


class RouteTool:
    """A route of your backend as a tool."""

    def __init__(self, **fields: Unpack[RouteFields]) -> None:
        """Nothing is checked here: all problems of a file are told at once."""
        frame = inspect.currentframe()
        caller = frame.f_back if frame else None
        self.entry = Entry(dict(fields), caller.f_lineno if caller else 1)


class HandlerTool:
    """A function as a tool; what `@tool` makes of it."""

    def __init__(self, handler: Handler, fields: Mapping[str, Any]) -> None:
        own = {"name": getattr(handler, "__name__", ""), "description": inspect.getdoc(handler)}
        code = getattr(handler, "__code__", None)
        self.handler = handler
        self.entry = Entry(
            {key: value for key, value in (own | dict(fields)).items() if value is not None},
            code.co_firstlineno if code else 1,
            handler,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Awaitable[Any]:
        """The function itself, for tests of one's own."""
        return self.handler(*args, **kwargs)


def tool(**fields: Unpack[HandlerFields]) -> Callable[[Handler], HandlerTool]:
    """Declare an async function `(ctx: HandlerContext, args)` as a tool."""
    return lambda handler: HandlerTool(handler, fields)

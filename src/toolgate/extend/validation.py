"""From what the user wrote to a tool, or to every reason why not."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast, get_type_hints

from pydantic import BaseModel

from toolgate.extend.declarations import Entry
from toolgate.extend.parameters import STYLES, QueryStyle
from toolgate.extend.route_attachments import base64_field
from toolgate.extend.routes import Address, BadAddress, OwnResult, RouteCall, address_of
from toolgate.extend.schemas import (
    BadSchema,
    Schema,
    SchemaCheck,
    argument_reader,
    compile_schema,
    is_json,
    without_unknown_names,
)
from toolgate.extend.tools import OWN, HandlerCall, OwnTool, takes_context_and_arguments
from toolgate.gate.attachments import BadAttachment, attachment_field
from toolgate.gate.principal import Role
from toolgate.gate.schemas import input_schema, output_schema
from toolgate.gate.scope import has_scope_ids
from toolgate.gate.tool import Effect, Input, Target, ToolLimits
from toolgate.sections import ExtendSettings

NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
BY_METHOD = {"GET": Effect.READ, "DELETE": Effect.DESTROY}
HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
SHARED = (
    "name",
    "title",
    "description",
    "role",
    "annotations",
    "input_schema",
    "output_schema",
    "_meta",
    "icons",
)
ROUTE = (*SHARED, "method", "path", "parameters")
HANDLER = (*SHARED, "seconds", "slow")
PASSED = ("_meta", "icons")
SPELLINGS = {"inputSchema": "input_schema", "outputSchema": "output_schema"}
"""Names that MCP itself uses, and so do tools written for other servers."""

IN_PYTHON = "and functions are lost in JSON and YAML: write it in a tools.py with @tool()"


@dataclass(slots=True)
class EntryValidator:
    """One entry, and what is wrong with it so far."""

    entry: Entry
    settings: ExtendSettings
    problems: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])
    _written: dict[str, str] = field(default_factory=dict[str, str])
    """How the user spelled a key that has two spellings."""

    def __post_init__(self) -> None:
        """Read both spellings as one."""
        for spelling, key in SPELLINGS.items():
            if spelling not in self.entry.fields:
                continue
            if key in self.entry.fields:
                self._add_problem(
                    spelling, f"{spelling} and {key} are the same key, so write one of them"
                )
            self._written[key] = spelling
            self.entry = self.entry.rename(spelling, key)

    def tool(self) -> OwnTool | None:
        """The tool; None if there are problems."""
        self._keys()
        name, description = self._text("name"), self._text("description")
        if name and not NAME.fullmatch(name):
            self._add_problem("name", "name must be 1 to 128 letters, digits, _ . or -")
        role = self._one_of("role", tuple(Role), Role.ADMIN)
        hints = self._hints()
        extra_fields = self._extra_fields()
        limits = self._limits()
        parts = self._handler() if self.entry.handler else self._route()
        if parts is None or self.problems:
            return None
        title = self._title(name, hints)
        effect = _effect(hints, parts.effect)
        if parts.attachment_field and effect is not Effect.READ:
            self._add_problem(
                None, f"{parts.attachment_field} is an attachment, so say readOnlyHint: true"
            )
            return None
        return OwnTool(
            name=name,
            pack=OWN,
            family="handlers" if self.entry.handler else "routes",
            title=title,
            description=description,
            input=parts.input,
            output=OwnResult,
            role=Role(role),
            effect=effect,
            idempotent=hints.get("idempotentHint", effect is Effect.READ),
            open_world=hints.get("openWorldHint", parts.open_world),
            example=_example(parts.declared_input),
            writes=frozenset() if effect is Effect.READ else frozenset({Target.OUTSIDE}),
            limits=limits,
            handler=parts.call,
            reader=parts.reader,
            declared_input=parts.declared_input,
            declared_output=parts.declared_output,
            hints=hints,
            extra_fields=extra_fields,
            declared_attachment=parts.attachment_field,
        )

    def _add_problem(self, key: str | None, reason: str) -> None:
        self.problems.append((self.entry.line_of(key), f"{self.entry.label}: {reason}."))

    def _spelling(self, key: str) -> str:
        return self._written.get(key, key)

    def _keys(self) -> None:
        keys = HANDLER if self.entry.handler else ROUTE
        for key in self.entry.fields:
            if key in keys:
                continue
            if key in ("path", "handler"):
                self._add_problem(key, "it has a path and a handler, but a tool has one of them")
                continue
            near = difflib.get_close_matches(str(key), keys, n=1)
            hint = f"write {near[0]}" if near else f"known keys: {', '.join(keys)}"
            self._add_problem(key, f"unknown key {key!r}, {hint}")

    def _text(self, key: str) -> str:
        value = self.entry.fields.get(key)
        if isinstance(value, str) and value.strip():
            return value.strip()
        what = "is missing" if value is None else "must be a text that is not empty"
        self._add_problem(key, f"{key} {what}")
        return ""

    def _one_of(self, key: str, options: Sequence[str], default: str) -> str:
        value = self.entry.fields.get(key, default)
        if value in options:
            return str(value)
        self._add_problem(key, f"{key} must be one of: {', '.join(options)}")
        return default

    def _mapping(self, key: str) -> dict[str, Any] | None:
        value = self.entry.fields.get(key)
        if value is None:
            return None
        if isinstance(value, Mapping):
            return dict(cast("Mapping[str, Any]", value))
        self._add_problem(key, f"{self._spelling(key)} must be a mapping")
        return None

    def _limits(self) -> ToolLimits:
        seconds, slow = self.entry.fields.get("seconds"), self.entry.fields.get("slow", False)
        if seconds is not None and not (type(seconds) in (int, float) and seconds > 0):
            self._add_problem("seconds", "seconds must be a number above 0")
        if not isinstance(slow, bool):
            self._add_problem("slow", "slow must be true or false")
        return ToolLimits(seconds=seconds, slow=slow)

    def _hints(self) -> dict[str, Any]:
        hints = self._mapping("annotations") or {}
        for hint in HINTS:
            if not isinstance(hints.get(hint, False), bool):
                self._add_problem("annotations", f"annotations.{hint} must be true or false")
        if not isinstance(hints.get("title", ""), str):
            self._add_problem("annotations", "annotations.title must be a text")
        if not is_json(hints):
            self._add_problem("annotations", "annotations hold something that is not JSON")
        return hints

    def _extra_fields(self) -> dict[str, Any]:
        """What MCP knows and toolgate only passes on."""
        self._mapping("_meta")
        icons = self.entry.fields.get("icons", [])
        entries = cast("list[Any]", icons) if isinstance(icons, list) else [None]
        if any(not isinstance(one, Mapping) or "src" not in one for one in entries):
            self._add_problem("icons", "icons must be a list of mappings, each with src")
        fields = {key: self.entry.fields[key] for key in PASSED if key in self.entry.fields}
        if not is_json(fields):
            self._add_problem(None, f"{' or '.join(PASSED)} holds something that is not JSON")
        return fields

    def _title(self, name: str, hints: Mapping[str, Any]) -> str:
        title = self.entry.fields.get("title") or hints.get("title")
        plain = re.sub(r"[_.-]+", " ", name).strip() or name
        return str(title or plain[:1].upper() + plain[1:])

    def _compile(self, key: str, schema: Schema) -> SchemaCheck | None:
        try:
            return compile_schema(schema)
        except BadSchema as problem:
            self._add_problem(key, f"{self._spelling(key)} cannot be used, {problem}")
            return None

    def _output_schema(self) -> tuple[Schema, SchemaCheck | None]:
        schema = self._mapping("output_schema")
        if schema is None:
            return {}, None
        if schema.get("type") != "object":
            spelling = self._spelling("output_schema")
            self._add_problem("output_schema", f'{spelling} must have the type "object"')
            return schema, None
        return schema, self._compile("output_schema", schema)

    def _route(self) -> "ToolParts | None":
        method = self._one_of("method", METHODS, "GET")
        address = self._address()
        schema = self._mapping("input_schema")
        if address is None:
            return None
        takes = without_unknown_names(_from_path(address) if schema is None else schema)
        check = self._compile("input_schema", takes)
        gives, promise = self._output_schema()
        if check is None:
            return None
        for name in address.names:
            if name not in takes["properties"] or name not in takes.get("required", ()):
                spelling = self._spelling("input_schema")
                self._add_problem(
                    "path", f"path has {{{name}}}, so {spelling} must list and require it"
                )
        in_query = self._in_query(takes, address)
        attachment = base64_field(gives) if method == "GET" else None
        call = RouteCall(
            self.entry.label, method, address, self.settings, promise, in_query, attachment
        )
        return ToolParts(
            call=call,
            reader=argument_reader(check),
            declared_input=takes,
            declared_output=gives,
            effect=BY_METHOD.get(method, Effect.WRITE),
            open_world=not address.trusted,
            attachment_field=attachment,
        )

    def _in_query(self, takes: Schema, address: Address) -> dict[str, QueryStyle]:
        """The arguments that `parameters` speaks of."""
        styles: dict[str, QueryStyle] = {}
        for name, one in (self._mapping("parameters") or {}).items():
            fields = cast("dict[str, Any]", one) if isinstance(one, dict) else {"style": None}
            style, explode = fields.get("style", "form"), fields.get("explode")
            if name not in takes["properties"] or name in address.names:
                self._add_problem(
                    "parameters", f"parameters has {name}, which is no argument for the query"
                )
            elif fields.keys() - {"in", "style", "explode"} or fields.get("in", "query") != "query":
                message = "must be a mapping of in (query), style and explode"
                self._add_problem("parameters", f"parameters.{name} {message}")
            elif style not in STYLES or not isinstance(explode, bool | None):
                message = f"style must be one of: {', '.join(STYLES)}; explode true or false"
                self._add_problem("parameters", f"parameters.{name}: {message}")
            else:
                styles[name] = QueryStyle(style, style == "form" if explode is None else explode)
        return styles

    def _address(self) -> Address | None:
        if "path" not in self.entry.fields:
            self._add_problem(None, f"it has neither a path nor a handler, {IN_PYTHON}")
            return None
        path = self._text("path")
        try:
            return address_of(path, self.settings.base_url) if path else None
        except BadAddress as problem:
            self._add_problem("path", f"path cannot be used, {problem}")
            return None

    def _handler(self) -> "ToolParts | None":
        handler = self.entry.handler
        assert handler is not None
        if not takes_context_and_arguments(handler):
            self._add_problem(None, "a handler is `async def name(ctx: HandlerContext, args)`")
            return None
        try:
            hints = get_type_hints(handler)
        except Exception as error:
            self._add_problem(
                None, f"its type hints cannot be read, {type(error).__name__}: {error}"
            )
            return None
        model, answer = _models(handler, hints)
        if model and "input_schema" in self.entry.fields:
            spelling = self._spelling("input_schema")
            self._add_problem("input_schema", f"{spelling} is given, but args has a model already")
        return self._handler_parts(model, answer)

    def _handler_parts(
        self, model: type[BaseModel] | None, answer: type[BaseModel] | None
    ) -> "ToolParts | None":
        gives, promise = self._output_schema()
        handler = self.entry.handler
        assert handler is not None
        attachment = self._attachment(answer) if answer else None
        if attachment and gives:
            conflict = f"output_schema is given, but {attachment} needs the model's own"
            self._add_problem("output_schema", conflict)
        call = HandlerCall(self.entry.label, handler, answer, promise, attachment)
        if answer and not gives:
            gives = output_schema(answer)
        if model is not None and has_scope_ids(model):
            self._add_problem(
                None, "Scoped is for the tools of a pack, so check the id in the handler"
            )
        if model is not None:
            takes = input_schema(model)
            reader = model.__pydantic_validator__.validate_python
            return ToolParts(call, reader, takes, gives, Effect.WRITE, False, model, attachment)
        takes = without_unknown_names(self._mapping("input_schema") or {})
        check = self._compile("input_schema", takes)
        if check is None:
            return None
        reader = argument_reader(check)
        return ToolParts(
            call, reader, takes, gives, Effect.WRITE, False, attachment_field=attachment
        )

    def _attachment(self, answer: type[BaseModel]) -> str | None:
        """The field of a handler's answer that is an attachment."""
        try:
            return attachment_field(answer)
        except BadAttachment as problem:
            self._add_problem(None, f"{answer.__name__} {problem}")
            return None


@dataclass(frozen=True, slots=True)
class ToolParts:
    """What routes and handlers differ in."""

    call: Any
    reader: Any
    declared_input: Schema
    declared_output: Schema
    effect: Effect
    open_world: bool
    input: Any = Input
    attachment_field: str | None = None


def _models(
    handler: Any, hints: Mapping[str, Any]
) -> tuple[type[BaseModel] | None, type[BaseModel] | None]:
    """The models of a handler's second argument and of its answer, where it has any."""
    second = handler.__code__.co_varnames[1] if handler.__code__.co_argcount > 1 else ""
    return _model(hints.get(second)), _model(hints.get("return"))


def _model(hint: Any) -> type[BaseModel] | None:
    return hint if isinstance(hint, type) and issubclass(hint, BaseModel) else None


def _effect(hints: Mapping[str, Any], default: Effect) -> Effect:
    if hints.get("readOnlyHint") is True:
        return Effect.READ
    if hints.get("destructiveHint") is True:
        return Effect.DESTROY
    denied = {Effect.READ: "readOnlyHint", Effect.DESTROY: "destructiveHint"}.get(default, "")
    return Effect.WRITE if hints.get(denied) is False else default


def _from_path(address: Address) -> Schema:
    names = list(dict.fromkeys(address.names))
    properties = {name: {"type": "string", "minLength": 1} for name in names}
    return {"type": "object", "properties": properties, "required": names}


def _example(schema: Schema) -> Mapping[str, Any]:
    examples = schema.get("examples")
    entries = cast("list[Any]", examples) if isinstance(examples, list) else []
    return cast("Schema", entries[0]) if entries and isinstance(entries[0], dict) else {}

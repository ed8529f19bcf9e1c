"""What the public MCP conformance suite expects to find on a server.

Plain values and functions over the SDK's own types: no server, no transport, no toolgate. The glue
that serves them decides how a tool is listed, authorised and called. Names, arguments and contents
are the suite's, letter for letter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import PromptsListChanged, ServerEvent, ToolsListChanged

Raw = ServerRequestContext[Any, Any]
ToolResult = types.CallToolResult | types.InputRequiredResult
ToolHandler = Callable[[Raw, types.CallToolRequestParams], Awaitable[ToolResult]]
Publish = Callable[[ServerEvent], Awaitable[None]]

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJg"
    "gg=="
)
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
STEP = 0.05
"""Seconds between two notifications of one call, as the suite asks."""

NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class FixtureTool:
    name: str
    description: str
    handler: ToolHandler
    input_schema: dict[str, Any]


def tools(publish: Publish) -> tuple[FixtureTool, ...]:
    """Every fixture tool; `publish` reaches the open `subscriptions/listen` streams."""

    async def trigger_tool_change(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
        await publish(ToolsListChanged())
        return text("tool list changed")

    async def trigger_prompt_change(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
        await publish(PromptsListChanged())
        return text("prompt list changed")

    return (
        *_CONTENT_TOOLS,
        *_NOTIFYING_TOOLS,
        *_ASKING_TOOLS,
        *_INPUT_REQUIRED_TOOLS,
        FixtureTool(
            "test_trigger_tool_change",
            "Announces a changed tool list.",
            trigger_tool_change,
            NO_ARGUMENTS,
        ),
        FixtureTool(
            "test_trigger_prompt_change",
            "Announces a changed prompt list.",
            trigger_prompt_change,
            NO_ARGUMENTS,
        ),
    )


def text(value: str, *, is_error: bool = False) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=value)], is_error=is_error)


# Content: one tool a content type.


async def _simple_text(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    return text("This is a simple text response for testing.")


async def _image(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    return types.CallToolResult(content=[types.ImageContent(data=PNG, mime_type="image/png")])


async def _audio(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    return types.CallToolResult(content=[types.AudioContent(data=WAV, mime_type="audio/wav")])


async def _embedded_resource(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    return types.CallToolResult(
        content=[
            _embedded(
                "test://embedded-resource", "text/plain", "This is an embedded resource content."
            )
        ]
    )


async def _mixed_content(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    return types.CallToolResult(
        content=[
            types.TextContent(text="Multiple content types test:"),
            types.ImageContent(data=PNG, mime_type="image/png"),
            _embedded(
                "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
            ),
        ]
    )


def _embedded(uri: str, mime_type: str, body: str) -> types.EmbeddedResource:
    return types.EmbeddedResource(
        resource=types.TextResourceContents(uri=uri, mime_type=mime_type, text=body)
    )


async def _error(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    return text("This tool intentionally returns an error for testing", is_error=True)


async def _json_schema(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    return text("json_schema_2020_12_tool")


async def _mirrored_header(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    return text(f"region={(params.arguments or {}).get('region', '<none>')}")


JSON_SCHEMA_2020_12: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

MIRRORED_HEADER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {
            "type": "string",
            "description": "Mirrored into a header.",
            "x-mcp-header": "Region",
        }
    },
}

_CONTENT_TOOLS = (
    FixtureTool("test_simple_text", "Returns one text.", _simple_text, NO_ARGUMENTS),
    FixtureTool("test_image_content", "Returns one image.", _image, NO_ARGUMENTS),
    FixtureTool("test_audio_content", "Returns one sound.", _audio, NO_ARGUMENTS),
    FixtureTool(
        "test_embedded_resource", "Returns one embedded resource.", _embedded_resource, NO_ARGUMENTS
    ),
    FixtureTool(
        "test_multiple_content_types",
        "Returns text, image and resource.",
        _mixed_content,
        NO_ARGUMENTS,
    ),
    FixtureTool("test_error_handling", "Always fails.", _error, NO_ARGUMENTS),
    FixtureTool(
        "json_schema_2020_12_tool", "Has a rich input schema.", _json_schema, JSON_SCHEMA_2020_12
    ),
    FixtureTool(
        "test_x_mcp_header", "Mirrors an argument into a header.", _mirrored_header, MIRRORED_HEADER
    ),
)


# Notifications during a call: they ride the response stream of the call itself.


async def _logging(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await _log(raw, line)
        await anyio.sleep(STEP)
    return text("Tool with logging executed successfully")


async def _reconnection(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    await _log(raw, "Before disconnect")
    if raw.close_sse_stream is not None:
        await raw.close_sse_stream()
    await anyio.sleep(4 * STEP)
    await _log(raw, "After reconnect")
    return text("Reconnection test completed")


async def _log(raw: Raw, line: str) -> None:
    # The session drops the entry when a 2026-07-28 request did not ask for logs.
    await raw.session.send_log_message("info", line, related_request_id=raw.request_id)  # pyright: ignore[reportDeprecated]


_NOTIFYING_TOOLS = (
    FixtureTool("test_tool_with_logging", "Sends three log entries.", _logging, NO_ARGUMENTS),
    FixtureTool("test_logging_tool", "Sends log entries when asked for.", _logging, NO_ARGUMENTS),
    FixtureTool(
        "test_reconnection", "Closes its stream during the call.", _reconnection, NO_ARGUMENTS
    ),
)


# Requests from server to client (up to 2025-11-25): they need a session, because the answer comes
# in another POST.


async def _sampling(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    if not raw.session.can_send_request:
        return text("Sampling needs a session", is_error=True)
    answer = await raw.session.create_message(  # pyright: ignore[reportDeprecated]
        [_user((params.arguments or {})["prompt"])],
        max_tokens=100,
        related_request_id=raw.request_id,
    )
    content = answer.content
    return text(
        f"LLM response: {content.text if isinstance(content, types.TextContent) else content.type}"
    )


async def _elicitation(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    schema = _form(
        {
            "username": {"type": "string", "description": "User's response"},
            "email": {"type": "string", "description": "User's email address"},
        },
        required=["username", "email"],
    )
    return await _elicit(raw, "User response", (params.arguments or {})["message"], schema)


async def _elicitation_defaults(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    schema = _form(
        {
            "name": {"type": "string", "default": "John Doe"},
            "age": {"type": "integer", "default": 30},
            "score": {"type": "number", "default": 95.5},
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": {"type": "boolean", "default": True},
        }
    )
    return await _elicit(raw, "Elicitation completed", "Please provide user information", schema)


async def _elicitation_enums(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    plain = ["option1", "option2", "option3"]
    titled = [
        {"const": f"value{n}", "title": f"{word} Option"}
        for n, word in ((1, "First"), (2, "Second"), (3, "Third"))
    ]
    schema = _form(
        {
            "untitledSingle": {"type": "string", "enum": plain},
            "titledSingle": {"type": "string", "oneOf": titled},
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
            "titledMulti": {"type": "array", "items": {"anyOf": titled}},
        }
    )
    return await _elicit(raw, "Elicitation completed", "Please select values", schema)


async def _elicit(raw: Raw, prefix: str, message: str, schema: dict[str, Any]) -> ToolResult:
    if not raw.session.can_send_request:
        return text("Elicitation needs a session", is_error=True)
    answer = await raw.session.elicit_form(message, schema, related_request_id=raw.request_id)
    return text(f"{prefix}: action={answer.action}, content={json.dumps(answer.content or {})}")


def _user(line: str) -> types.SamplingMessage:
    return types.SamplingMessage(role="user", content=types.TextContent(text=line))


def _form(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required or []}


def _one_string(name: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}


_ASKING_TOOLS = (
    FixtureTool("test_sampling", "Asks the client's model.", _sampling, _one_string("prompt")),
    FixtureTool("test_elicitation", "Asks the user.", _elicitation, _one_string("message")),
    FixtureTool(
        "test_elicitation_sep1034_defaults",
        "Asks with defaults.",
        _elicitation_defaults,
        NO_ARGUMENTS,
    ),
    FixtureTool(
        "test_elicitation_sep1330_enums", "Asks with enums.", _elicitation_enums, NO_ARGUMENTS
    ),
)


# Input-required results (2026-07-28): the call ends with questions, the client calls again with
# the answers.


async def _missing_capability(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    if not _declares(raw, "sampling"):
        raise _missing("sampling")
    return text("Client declared sampling capability; proceeding.")


async def _streaming_elicitation(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    if not _declares(raw, "elicitation"):
        raise _missing("elicitation")
    if name := _answer(params, "user_name", "name"):
        return text(f"Hello, {name}!")
    return types.InputRequiredResult(input_requests={"user_name": _ask_name()})


async def _required_elicitation(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    if name := _answer(params, "user_name", "name"):
        return text(f"Hello, {name}!")
    return types.InputRequiredResult(input_requests={"user_name": _ask_name()})


async def _required_sampling(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    answer = (params.input_responses or {}).get("capital_question")
    if isinstance(answer, types.CreateMessageResult) and isinstance(
        answer.content, types.TextContent
    ):
        return text(f"Model said: {answer.content.text}")
    question = _ask_model("What is the capital of France?", 100)
    return types.InputRequiredResult(input_requests={"capital_question": question})


async def _required_roots(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    answer = (params.input_responses or {}).get("client_roots")
    if isinstance(answer, types.ListRootsResult):
        return text("Roots: " + ", ".join(str(root.uri) for root in answer.roots))
    return types.InputRequiredResult(input_requests={"client_roots": types.ListRootsRequest()})


async def _request_state(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    if params.request_state == "request-state" and "confirm" in (params.input_responses or {}):
        return text("state-ok")
    return types.InputRequiredResult(
        input_requests={"confirm": _ask_confirmation()}, request_state="request-state"
    )


async def _tampered_state(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    # A tampered state never arrives here: the server refuses what it did not seal.
    if params.request_state == "tampered-state":
        return text("state-ok")
    return types.InputRequiredResult(
        input_requests={"confirm": _ask_confirmation()}, request_state="tampered-state"
    )


async def _multiple_inputs(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    questions: types.InputRequests = {
        "user_name": _ask_name(),
        "greeting": _ask_model("Generate a greeting", 50),
        "client_roots": types.ListRootsRequest(),
    }
    if params.request_state and questions.keys() <= (params.input_responses or {}).keys():
        return text("All inputs received.")
    return types.InputRequiredResult(input_requests=questions, request_state="multiple-inputs")


async def _multi_round(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    state = json.loads(params.request_state) if params.request_state else {}
    if "name" in state and (color := _answer(params, "step2", "color")):
        return text(f"{state['name']} likes {color}.")
    if state and (name := _answer(params, "step1", "name")):
        question = _ask("Step 2: What is your favorite color?", _one_string("color"))
        return types.InputRequiredResult(
            input_requests={"step2": question}, request_state=json.dumps({"round": 2, "name": name})
        )
    question = _ask("Step 1: What is your name?", _one_string("name"))
    return types.InputRequiredResult(
        input_requests={"step1": question}, request_state=json.dumps({"round": 1})
    )


async def _declared_only(raw: Raw, params: types.CallToolRequestParams) -> ToolResult:
    questions: types.InputRequests = {}
    if _declares(raw, "sampling"):
        questions["sample"] = _ask_model("Say hello", 50)
    if _declares(raw, "elicitation"):
        questions["ask"] = _ask_name()
    return types.InputRequiredResult(input_requests=questions, request_state="declared-only")


def _declares(raw: Raw, capability: str) -> bool:
    return getattr(raw.session.client_capabilities, capability, None) is not None


def _missing(capability: str) -> MCPError:
    return MCPError(
        types.MISSING_REQUIRED_CLIENT_CAPABILITY,
        f"This tool requires the client '{capability}' capability",
        {"requiredCapabilities": {capability: {}}},
    )


def _answer(params: types.InputResponseRequestParams, key: str, field: str) -> str | None:
    answer = (params.input_responses or {}).get(key)
    value = (answer.content or {}).get(field) if isinstance(answer, types.ElicitResult) else None
    return value if isinstance(value, str) else None


def _ask(message: str, schema: dict[str, Any]) -> types.ElicitRequest:
    return types.ElicitRequest(
        params=types.ElicitRequestFormParams(message=message, requested_schema=schema)
    )


def _ask_name() -> types.ElicitRequest:
    return _ask("What is your name?", _one_string("name"))


def _ask_confirmation() -> types.ElicitRequest:
    return _ask("Please confirm", _form({"ok": {"type": "boolean"}}, required=["ok"]))


def _ask_model(line: str, max_tokens: int) -> types.CreateMessageRequest:
    params = types.CreateMessageRequestParams(messages=[_user(line)], max_tokens=max_tokens)
    return types.CreateMessageRequest(params=params)


_INPUT_REQUIRED_TOOLS = tuple(
    FixtureTool(name, description, handler, NO_ARGUMENTS)
    for name, description, handler in (
        ("test_missing_capability", "Needs a client that samples.", _missing_capability),
        ("test_streaming_elicitation", "Needs a client that elicits.", _streaming_elicitation),
        ("test_input_required_result_elicitation", "Ends with a question.", _required_elicitation),
        ("test_input_required_result_sampling", "Ends with a prompt.", _required_sampling),
        (
            "test_input_required_result_list_roots",
            "Ends with a question for roots.",
            _required_roots,
        ),
        ("test_input_required_result_request_state", "Carries a state.", _request_state),
        (
            "test_input_required_result_multiple_inputs",
            "Ends with three questions.",
            _multiple_inputs,
        ),
        ("test_input_required_result_multi_round", "Asks twice.", _multi_round),
        ("test_input_required_result_tampered_state", "Carries a sealed state.", _tampered_state),
        (
            "test_input_required_result_capabilities",
            "Asks what the client declared.",
            _declared_only,
        ),
    )
)


# Resources.

RESOURCES = (
    types.Resource(
        uri="test://static-text",
        name="static-text",
        description="A fixed text.",
        mime_type="text/plain",
    ),
    types.Resource(
        uri="test://static-binary",
        name="static-binary",
        description="A fixed image.",
        mime_type="image/png",
    ),
    types.Resource(
        uri="test://watched-resource",
        name="watched",
        description="One to watch.",
        mime_type="text/plain",
    ),
)
RESOURCE_TEMPLATES = (
    types.ResourceTemplate(
        uri_template="test://template/{id}/data",
        name="template",
        description="Data by id.",
        mime_type="application/json",
    ),
)
_TEMPLATE = re.compile(r"test://template/([^/]+)/data")


def read_resource(uri: str) -> types.ReadResourceResult:
    match uri:
        case "test://static-text":
            return _text_resource(
                uri, "text/plain", "This is the content of the static text resource."
            )
        case "test://static-binary":
            blob = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=PNG)
            return types.ReadResourceResult(contents=[blob])
        case "test://watched-resource":
            return _text_resource(uri, "text/plain", "Watched resource content")
        case _ if found := _TEMPLATE.fullmatch(uri):
            data = {"id": found[1], "templateTest": True, "data": f"Data for ID: {found[1]}"}
            return _text_resource(uri, "application/json", json.dumps(data))
        case _:
            raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})


def _text_resource(uri: str, mime_type: str, body: str) -> types.ReadResourceResult:
    return types.ReadResourceResult(
        contents=[types.TextResourceContents(uri=uri, mime_type=mime_type, text=body)]
    )


@dataclass(slots=True)
class Subscriptions:
    """`resources/subscribe` and `resources/unsubscribe` of the handshake era."""

    uris: set[str]

    async def subscribe(self, raw: Raw, params: types.SubscribeRequestParams) -> types.EmptyResult:
        self.uris.add(params.uri)
        return types.EmptyResult()

    async def unsubscribe(
        self, raw: Raw, params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        self.uris.discard(params.uri)
        return types.EmptyResult()


# Prompts.


def _argument(name: str, description: str) -> types.PromptArgument:
    return types.PromptArgument(name=name, description=description, required=True)


PROMPTS = (
    types.Prompt(name="test_simple_prompt", description="One text."),
    types.Prompt(
        name="test_prompt_with_arguments",
        description="One text with two arguments in it.",
        arguments=[
            _argument("arg1", "First test argument"),
            _argument("arg2", "Second test argument"),
        ],
    ),
    types.Prompt(
        name="test_prompt_with_embedded_resource",
        description="A resource and a text.",
        arguments=[_argument("resourceUri", "URI of the resource to embed")],
    ),
    types.Prompt(name="test_prompt_with_image", description="An image and a text."),
    types.Prompt(
        name="test_input_required_result_prompt",
        description="A text that needs the user's context.",
    ),
)


def get_prompt(
    params: types.GetPromptRequestParams,
) -> types.GetPromptResult | types.InputRequiredResult:
    arguments = params.arguments or {}
    match params.name:
        case "test_simple_prompt":
            return _prompt(types.TextContent(text="This is a simple prompt for testing."))
        case "test_prompt_with_arguments":
            first, second = arguments.get("arg1"), arguments.get("arg2")
            line = f"Prompt with arguments: arg1='{first}', arg2='{second}'"
            return _prompt(types.TextContent(text=line))
        case "test_prompt_with_embedded_resource":
            return _prompt(
                _embedded(
                    arguments.get("resourceUri", ""),
                    "text/plain",
                    "Embedded resource content for testing.",
                ),
                types.TextContent(text="Please process the embedded resource above."),
            )
        case "test_prompt_with_image":
            return _prompt(
                types.ImageContent(data=PNG, mime_type="image/png"),
                types.TextContent(text="Please analyze the image above."),
            )
        case "test_input_required_result_prompt":
            if context := _answer(params, "user_context", "context"):
                return _prompt(types.TextContent(text=f"Use the following context: {context}"))
            question = _ask("What context should the prompt use?", _one_string("context"))
            return types.InputRequiredResult(input_requests={"user_context": question})
        case _:
            raise MCPError(types.INVALID_PARAMS, "Prompt not found", {"name": params.name})


def _prompt(*content: types.ContentBlock) -> types.GetPromptResult:
    return types.GetPromptResult(
        messages=[types.PromptMessage(role="user", content=block) for block in content]
    )


# Utilities.


async def complete(raw: Raw, params: types.CompleteRequestParams) -> types.CompleteResult:
    values = [
        word
        for word in ("paris", "park", "party", "test")
        if word.startswith(params.argument.value)
    ]
    return types.CompleteResult(
        completion=types.Completion(values=values, total=len(values), has_more=False)
    )


async def set_logging_level(raw: Raw, params: types.SetLevelRequestParams) -> types.EmptyResult:
    return types.EmptyResult()

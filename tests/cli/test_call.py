"""`toolgate call`: the answer on standard output, the verdict in the exit code."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from toolgate.cli.arguments import read_arguments
from toolgate.cli.problems import Stop

pytestmark = pytest.mark.usefixtures("data")

JANE = ("get_document", "collection=users", "document_id=abc123")


def test_exit_codes_say_how_it_ended(cli: Any, process: Any) -> None:
    good = process("call", "list_collections")
    assert (good.code, good.err) == (0, "")
    assert good.out == json.dumps(good.json, separators=(",", ":"), ensure_ascii=False) + "\n"

    failed = process("call", *JANE)
    assert failed.code == 1
    assert failed.json == {"error": "Document abc123 not found in users"}

    misused = cli("call", "get_document", "no-equals-sign")
    assert (misused.code, misused.err) == (2, "")
    assert "key=value" in misused.json["error"]["hint"]

    incomplete = process("call", "get_document", "collection=users")
    assert (incomplete.code, incomplete.err) == (2, "")
    assert "document_id" in incomplete.json["error"]

    refused = process("call", "create_document", "--json", "{}")
    assert refused.code == 3
    assert refused.json["success"] is False


def test_a_hidden_tool_is_refused_in_the_words_for_one_that_is_not_there(cli: Any) -> None:
    hidden = cli("call", *JANE, "--as", "public")
    assert hidden.code == 3
    assert hidden.json == {"error": "Unknown tool: get_document"}


def test_a_misspelt_tool_is_a_usage_error_with_the_nearest_name(cli: Any) -> None:
    ended = cli("call", "get_documnt")
    assert ended.code == 2
    assert ended.json == {"error": "Unknown tool: get_documnt. Did you mean 'get_document'?"}
    assert "get_document" in ended.err


def test_a_dry_run_stores_nothing_and_says_so(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MCP_ENABLE_WRITES", "true")
    wanted = ("call", "create_document", "collection=users", "document_id=7", 'data={"a":1}')
    tried = cli(*wanted, "--dry-run")
    told = "create documents users/7\n  + a: 1\ndry run: nothing was stored\n"
    assert (tried.code, tried.err) == (0, told)
    assert tried.json == {"id": "7", "success": True}
    assert cli("call", "get_document", "collection=users", "document_id=7").code == 1
    assert cli(*wanted).code == 0
    assert cli(*wanted).code == 1
    assert cli("call", "get_document", "collection=users", "document_id=7").json["a"] == 1


def test_arguments_come_from_standard_input_too(process: Any) -> None:
    told = json.dumps({"collection_name": "users"})
    ended = process("call", "describe_collection", "--json", "-", input=told)
    assert (ended.code, ended.json["collection"]) == (0, "users")


SCHEMA = {
    "properties": {
        "id": {"type": "string"},
        "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "kind": {"$ref": "#/$defs/Kind"},
        "limit": {"type": "integer"},
        "value": {},
    },
    "$defs": {"Kind": {"type": "string", "enum": ["1", "2"]}},
}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("id=123", "123"),
        ("id=", ""),
        ("id=a=b", "a=b"),
        ("maybe=null", "null"),
        ("kind=1", "1"),
        ("limit=5", 5),
        ("limit=many", "many"),
        ("value=true", True),
        ("value=[1,2]", [1, 2]),
        ("value=plain text", "plain text"),
        ("unknown=1", 1),
    ],
)
def test_a_value_is_json_unless_the_schema_says_string(pair: str, value: object) -> None:
    assert read_arguments([pair], None, SCHEMA) == {pair.partition("=")[0]: value}


def test_single_arguments_win_over_the_json() -> None:
    assert read_arguments(["id=b"], '{"id": "a", "limit": 1}', SCHEMA) == {"id": "b", "limit": 1}
    assert read_arguments([], "[1]", SCHEMA) == [1]
    with pytest.raises(Stop, match="must be an object"):
        read_arguments(["id=b"], "[1]", SCHEMA)
    with pytest.raises(Stop, match="not valid JSON"):
        read_arguments([], "{x", SCHEMA)


@pytest.mark.parametrize(
    ("principal", "code"),
    [("admin", 0), ("user", 3), ("user:u1", 3), ("agent:pm", 3), ("public", 3), ("boss", 2),
     ("admin:x", 2), ("user:", 2), ("agent:boss", 2), ("key:nope", 2)],
)  # fmt: skip
def test_why_names_the_rule_and_the_exit_code_agrees(cli: Any, principal: str, code: int) -> None:
    ended = cli("why", principal, "get_document", "--json")
    assert ended.code == code
    if code == 2:
        assert principal.partition(":")[2] in ended.json["error"]["message"]
    else:
        assert ended.json["allowed"] is (code == 0)
        assert ended.json["rule"] == ("no-rule-permits" if code else "admin-everything")


def test_why_shows_what_the_rule_says_and_how_it_is_written(cli: Any) -> None:
    ended = cli("why", "admin", "create_document")
    assert ended.code == 3
    assert "MCP_ENABLE_WRITES" in ended.out
    assert '@id("appdata-writes-off")' in ended.out
    assert "There is no tool" in cli("why", "admin", "create_documint").err


def test_a_key_stands_for_its_holder_until_it_is_revoked(cli: Any) -> None:
    key = cli("keys", "create", "--role", "admin", "--json").json["id"]
    assert cli("why", f"key:{key}", "get_document").code == 0
    assert cli("call", "list_collections", "--as", f"key:{key}").code == 0
    rows = [
        json.loads(line) for line in cli("audit", "--principal", key, "--json").out.splitlines()
    ]
    [called] = [row for row in rows if row["tool_name"] == "list_collections"]
    assert called["subject_id"] == f"key:{key}"
    cli("keys", "revoke", key)
    revoked = cli("call", "list_collections", "--as", f"key:{key}")
    assert (revoked.code, revoked.err) == (3, "")
    assert "revoked" in revoked.json["error"]["message"]


@pytest.mark.parametrize(
    "arguments", [["get_document", "--as", "bob"], ["get_document", "--nope"], []], ids=" ".join
)
def test_what_is_printed_is_always_json(cli: Any, arguments: list[str]) -> None:
    ended = cli("call", *arguments)
    assert (ended.code, ended.err) == (2, "")
    assert ended.json["error"].keys() == {"message", "hint"}


def test_the_catalogue_is_what_the_principal_sees(cli: Any) -> None:
    every = {tool["name"] for tool in cli("tools", "--json").json["tools"]}
    public = {tool["name"] for tool in cli("tools", "--as", "public", "--json").json["tools"]}
    assert {"get_document", "create_document"} <= every
    assert public == {"list_collections", "describe_collection", "health_check"}
    narrowed = cli("tools", "--pack", "appdata", "--role", "public", "--json").json["tools"]
    assert {tool["name"] for tool in narrowed} == public - {"health_check"}
    assert "(off: appdata-writes-off)" in cli("tools").out
    assert "No tools." in cli("tools", "--as", "public", "--role", "admin").out
    assert "Packs: " in cli("tools", "--pack", "nope").err
    assert "Roles: " in cli("tools", "--role", "nope").err


def test_one_tool_is_shown_with_an_example_that_can_be_pasted(cli: Any) -> None:
    shown = cli("tools", "show", "get_document").out
    assert "toolgate call get_document collection=users document_id=abc123" in shown
    assert "POST /v1/tools/get_document" in shown
    nested = cli("tools", "show", "query_collection").out
    assert "toolgate call query_collection --json '{" in nested
    assert cli("tools", "--json", "show", "get_document").json["inputSchema"]["properties"]
    missing = cli("tools", "show", "get_documnt")
    assert missing.code == 2
    assert "Did you mean get_document" in missing.err
    hidden = cli("tools", "show", "get_document", "--as", "public")
    assert (hidden.code, hidden.out) == (2, "")


TOOLS = '''
from pydantic import Field

from toolgate.extend import Attachment, HandlerContext, Input, Output, tool


class PictureInput(Input):
    name: str = Field(description="Whose picture.")
    sizes: list[int] = Field(description="How large.")
    grey: bool = Field(default=False, description="Without colours.")


class Picture(Output):
    name: str
    content: Attachment = Field(description="The picture.")


@tool(annotations={"readOnlyHint": True})
async def get_picture(ctx: HandlerContext, args: PictureInput) -> Picture:
    """Get a picture."""
    return Picture(name=args.name, content=Attachment.of(b"x"))


tools = [get_picture]
'''


def test_a_tool_without_an_example_is_shown_with_what_it_must_have(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    monkeypatch.setenv("TOOLGATE_EXTEND__TOOLS", "tools.py")
    shown = cli("tools", "show", "get_picture").out
    assert "Usage\n  toolgate call get_picture name=STRING sizes=LIST-OF-INTEGER\n" in shown
    assert "Example" not in shown
    assert cli("tools", "show", "get_picture", "--json").json["example"] is None


def test_an_attachment_is_shown_as_one(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    monkeypatch.setenv("TOOLGATE_EXTEND__TOOLS", "tools.py")
    shown = cli("tools", "show", "get_picture").out
    assert re.search(r"^ *content +attachment +yes +The picture\.$", shown, re.MULTILINE)
    assert "Attachment: content. `toolgate call` saves it with --save FILE." in shown


def test_options_may_stand_before_the_subcommand(cli: Any, data: Path, tmp_path: Path) -> None:
    data.rename(tmp_path / "elsewhere")
    assert cli("tools", "show", "get_document").code == 2
    assert cli("tools", "--data", "elsewhere", "show", "get_document").code == 0
    assert not (tmp_path / ".toolgate").exists()


FAILING = """from toolgate.extend import tool

@tool(input_schema={"type": "object"}, annotations={"readOnlyHint": True})
async def it_fails(ctx, args):
    "Fails."
    raise KeyError("the words of the error")

tools = [it_fails]
"""


@pytest.mark.usefixtures("data")
def test_a_traceback_is_printed_at_level_debug_alone(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools.py").write_text(FAILING)
    monkeypatch.setenv("TOOLGATE_EXTEND__TOOLS", "tools.py")
    ended = cli("call", "it_fails")
    assert (ended.code, "Traceback" in ended.err) == (1, False)
    assert f"it_fails failed: KeyError in {tmp_path / 'tools.py'}:6" in ended.err
    monkeypatch.setenv("TOOLGATE_LOG__LEVEL", "debug")
    ended = cli("call", "it_fails")
    assert (ended.code, "Traceback" in ended.err) == (1, True)
    assert "the words of the error" in ended.err
    monkeypatch.setenv("TOOLGATE_LOG__LEVEL", "info")
    assert "Traceback" not in cli("call", "it_fails").err


@pytest.mark.usefixtures("data")
def test_a_tool_that_is_hidden_is_told_how_to_find_out(cli: Any) -> None:
    ended = cli("call", "get_document", "--as", "user")
    assert (ended.code, "Unknown tool: get_document" in ended.out) == (3, True)
    told = "The tool exists, but not for user: `toolgate why user get_document` says why."
    assert told in ended.err


@pytest.mark.usefixtures("data")
def test_who_gives_a_file_with_an_at_sign_is_told_that_it_is_not_read(cli: Any) -> None:
    ended = cli("call", "query_collection", "collection=users", "filters=@filters.json")
    assert ended.code == 2
    told = '@ reads a file only where base64 is wanted. Write filters="$(cat FILE)".'
    assert told in ended.err


@pytest.mark.usefixtures("data")
def test_why_with_its_arguments_the_wrong_way_round_is_told_the_right_one(cli: Any) -> None:
    ended = cli("why", "get_document", "user")
    assert ended.code == 2
    assert "The principal comes first: `toolgate why user get_document`." in ended.err


@pytest.mark.usefixtures("data")
def test_arguments_of_why_that_are_no_json_are_told_with_an_example(cli: Any) -> None:
    ended = cli("why", "user", "get_document", "--args", "document_id=x")
    assert ended.code == 2
    assert """Write it like --args '{"task_id": "…"}'.""" in ended.err


@pytest.mark.usefixtures("data")
def test_the_fields_of_objects_within_an_answer_are_shown(cli: Any) -> None:
    shown = cli("tools", "show", "query_collection").out
    assert "data[].id" in shown
    assert "filters[].operator" in shown

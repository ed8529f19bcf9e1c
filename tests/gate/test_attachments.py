"""Attachments: where they may be declared, how large they may be, when they are read."""

import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.gate.files import FILES, LARGE, MIB, File, Folder, Wanted
from tests.gate.tools import a_tool, offer

from toolgate.gate.attachments import (
    MAX_BRACKETS,
    MAX_LINKED,
    Attachment,
    Delivery,
    linked_call,
    uri_of,
)
from toolgate.gate.calls import Call
from toolgate.gate.context import Context
from toolgate.gate.dialects import Dialect
from toolgate.gate.errors import InvalidArguments
from toolgate.gate.outcomes import Outcome
from toolgate.gate.tool import BadDeclaration, Effect, Output, ToolLimits
from toolgate.testing import Kit, opened_kit
from toolgate.testing.kit import ADMIN

pytestmark = pytest.mark.anyio


class Two(Output):
    """One too many."""

    first: Attachment
    second: Attachment | None = None


class Inside(Output):
    """Where no transport looks."""

    files: list[File]


class Itself(Output):
    """A model inside of itself, with an attachment beside."""

    inner: "Itself | None" = None
    file: Attachment


@pytest.mark.parametrize(
    ("gives", "effect", "told"),
    [
        (Two, Effect.READ, "first and second: one is possible"),
        (Inside, Effect.READ, "inside files: make it a field of the Output"),
        (Itself, Effect.READ, "file and inner|inner and file"),
        (File, Effect.WRITE, "writes, and an attachment is fetched by calling a tool again"),
    ],
    ids=["two", "inside a list", "inside itself", "of a write"],
)
def test_a_declaration_that_could_not_be_kept_is_refused(
    gives: type[Output], effect: Effect, told: str
) -> None:
    with pytest.raises(BadDeclaration, match=told):
        a_tool("wrong", gives=gives, effect=effect)


def test_the_schema_says_base64_and_over_mcp_leaves_the_field_out() -> None:
    tool = Folder().tool(pack="backend")
    in_json = tool.output_schema["properties"]["content_bytes_base64"]
    assert {"type": "string", "contentEncoding": "base64"} in in_json["anyOf"]
    assert list(tool.linked_output_schema["properties"]) == ["path"]
    assert a_tool("plain").linked_output_schema is not None
    assert a_tool("plain").attachment_field is None


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("../../etc/passwd", "passwd"),
        ("..\\..\\x.exe", "x.exe"),
        ("/abs/a b.txt", "a b.txt"),
        ("..", "attachment.png"),
        ("", "attachment.png"),
        ("folder/", "attachment.png"),
        (".bashrc", "bashrc"),
        ("C:x", "C_x"),
        ("a\x1b[31m\n.txt", "a_[31m_.txt"),
        ('a".txt', "a_.txt"),
        ("\ud800.txt", "_.txt"),
        ("größe.txt", "größe.txt"),
        ("€" * 500 + "." + "x" * 500, "€" * 66 + "." + "x" * 40),
    ],
    ids=lambda value: ascii(value)[:20],
)
def test_a_file_name_stays_in_its_folder(name: str, safe: str) -> None:
    attachment = Attachment.of(b"", name=name, media_type="image/png")
    assert attachment.file_name == safe
    assert len(attachment.file_name.encode()) < 255


@pytest.mark.parametrize(
    "media_type", ["", "text", "text/html\r\nX-Evil: 1", "text/ü", "a/b/c", "a/b; c"]
)
def test_what_is_no_media_type_is_not_sent_as_one(media_type: str) -> None:
    assert Attachment.of(b"", media_type=media_type).content_type == "application/octet-stream"
    assert Attachment.of(b"", media_type="text/a; charset=x").content_type == "text/a; charset=x"


# Links


@pytest.mark.parametrize(
    "arguments", [{}, {"path": "größe/../.."}, {"n": 2**70, "deep": [[1]], "b": True}], ids=str
)
def test_a_link_names_the_call(arguments: dict[str, Any]) -> None:
    uri = uri_of("file.get", arguments)
    assert uri.isascii()
    assert linked_call(uri) == ("file.get", arguments)


@pytest.mark.parametrize(
    "arguments",
    [{"path": "x" * MAX_LINKED}, {"deep": [[]] * MAX_BRACKETS}],
    ids=["long", "nested"],
)
def test_arguments_that_do_not_fit_a_link_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidArguments, match="call the tool over plain HTTP"):
        uri_of("file.get", arguments)


@pytest.mark.parametrize(
    "uri",
    [
        "",
        "toolgate://attachments/",
        "toolgate://attachments/file.get",
        "toolgate://attachments/file.get/",
        "toolgate://attachments/file.get/e",
        "toolgate://attachments/file.get/e30?x",
        "toolgate://attachments/file.get/ü",
        "toolgate://attachments/file.get/W10",
        "toolgate://attachments/file.get/" + "W1tb" * 1000,
        "toolgate://attachments/file.get/" + "MTEx" * 1360,
        "https://attachments/file.get/e30",
    ],
    ids=lambda uri: uri[-20:] or "nothing",
)
def test_what_no_tool_gave_is_no_link(uri: str) -> None:
    assert linked_call(uri) is None


# Through the gate


@pytest.fixture
def folder() -> Folder:
    return Folder()


@pytest.fixture
async def kit(tmp_path: Path, folder: Folder) -> AsyncIterator[Kit]:
    small = ToolLimits(result_bytes=4)
    tools = [folder.tool(), folder.tool("small.get", limits=small)]
    async with opened_kit(
        tmp_path, plugins=offer(*tools, a_tool("grown", grown, gives=File))
    ) as one:
        yield one


async def grown(ctx: Context[Any], args: Any) -> File:
    async def read() -> bytes:
        return b"more than it was"

    return File(path="x", content_bytes_base64=Attachment(size=4, read=read))


async def linked(kit: Kit, tool: str, **arguments: Any) -> Outcome:
    call = Call(
        tool=tool,
        arguments=arguments,
        principal=ADMIN,
        request_id="test",
        transport="test",
        attachments=Delivery.LINK,
    )
    return await kit.app.gate.execute(call)


@pytest.mark.parametrize("path", ["hello.txt", "empty", "large"])
async def test_bytes_are_handed_over_beside_the_body(kit: Kit, folder: Folder, path: str) -> None:
    outcome = await kit.call("file.get", path=path)
    assert outcome.body == {"status": "success", "result": {"path": path}}
    assert outcome.attached is not None
    assert outcome.attached.data == FILES[path]
    assert outcome.attached.uri is None
    assert folder.reads == 1


async def test_base64_is_in_a_body_of_its_own_however_the_dialect_makes_it(kit: Kit) -> None:
    outcome = await kit.call("file.get", path="hello.txt")
    assert outcome.attached is not None
    copying = Dialect(lambda one: {"copied": dict(one)}, lambda one: one, lambda *_: {})

    inline = orjson.dumps(replace(outcome.attached, dialect=copying).inline())

    encoded = base64.b64encode(FILES["hello.txt"]).decode()
    fields = {"path": "hello.txt", "content_bytes_base64": encoded}
    assert orjson.loads(inline) == {"copied": fields}
    assert orjson.loads(orjson.dumps(outcome.attached.inline()))["result"] == fields
    assert outcome.body == {"status": "success", "result": {"path": "hello.txt"}}


async def test_a_link_needs_no_bytes(kit: Kit, folder: Folder) -> None:
    outcome = await linked(kit, "file.get", path="large")
    assert outcome.attached is not None
    assert outcome.attached.uri == uri_of("file.get", {"path": "large"})
    assert (outcome.attached.attachment.size, folder.reads) == (10 * MIB, 0)


async def test_an_answer_may_have_nothing_to_hand_over(kit: Kit, folder: Folder) -> None:
    for outcome in (
        await kit.call("file.get", path="nothing"),
        await linked(kit, "file.get", path="nothing"),
    ):
        assert outcome.attached is None
        assert outcome.body["result"] == {"path": "nothing", "content_bytes_base64": None}


@pytest.mark.parametrize("ask", [Kit.call, linked], ids=["bytes", "a link"])
async def test_what_is_too_large_is_refused_unread(kit: Kit, folder: Folder, ask: Any) -> None:
    outcome = await ask(kit, "file.get", path="larger")
    assert outcome.error_type == "size_limit_exceeded"
    assert f"{len(LARGE) + 1} bytes, over the limit of {len(LARGE)} " in outcome.error.message
    assert "limits.attachment_bytes" in outcome.error.message
    assert folder.reads == 0
    (row,) = await kit.audit_rows()
    assert row["error_type"] == "size_limit_exceeded"


async def test_the_limit_of_the_tool_itself_counts_for_its_bytes(tmp_path: Path) -> None:
    tool = Folder().tool(limits=ToolLimits(result_bytes=60))
    async with opened_kit(tmp_path, plugins=offer(tool), limits__attachment_bytes=2048) as kit:
        assert (await kit.call("file.get", path="hello.txt")).error is None
        refused = await kit.call("file.get", path="longer")
    assert refused.error is not None
    assert "has 61 bytes, over the limit of 60" in refused.error.message


async def test_the_rest_of_the_answer_has_the_limit_of_any_answer(kit: Kit, folder: Folder) -> None:
    refused = await kit.call("small.get", path="hello.txt")
    assert refused.error is not None
    assert refused.error.message.startswith("The answer has")
    assert folder.reads == 0


async def test_bytes_that_changed_meanwhile_are_not_handed_over(kit: Kit) -> None:
    outcome = await kit.call("grown")
    assert outcome.error_type == "conflict"


async def test_failures_of_the_tool_are_answered_as_any(kit: Kit) -> None:
    for outcome in (await kit.call("file.get", path="x"), await linked(kit, "file.get", path="x")):
        assert outcome.error_type == "not_found"
    long = await linked(kit, "file.get", path="x" * MAX_LINKED)
    assert long.error_type == "invalid_arguments"


def test_an_input_is_never_an_attachment() -> None:
    with pytest.raises(ValueError, match="instance of Attachment"):
        File.model_validate({"path": "x", "content_bytes_base64": "aGVsbG8="})
    assert Wanted(path="x").path == "x"


@pytest.mark.parametrize(
    "wrong",
    [{"data": "text"}, {"data": b"x", "name": 5}, {"data": b"x", "media_type": None}],
    ids=["text", "name", "media type"],
)
def test_an_attachment_of_wrong_types_is_none(wrong: dict[str, Any]) -> None:
    data = wrong.pop("data")
    with pytest.raises(TypeError, match=r"of an Attachment must be (str|bytes)"):
        Attachment.of(data, **wrong)


async def test_what_is_read_must_be_bytes(tmp_path: Path) -> None:
    async def reads_text() -> Any:
        return "text"

    async def hands_over(ctx: Context[Any], args: Any) -> File:
        return File(path="x", content_bytes_base64=Attachment(size=4, read=reads_text))

    tool = a_tool("file.wrong", hands_over, gives=File)
    async with opened_kit(tmp_path, plugins=offer(tool)) as kit:
        outcome = await kit.call("file.wrong")
        (row,) = await kit.audit_rows()
    assert outcome.status == 500
    assert (row["status"], row["error_type"]) == ("error", "internal_error")


@pytest.mark.parametrize(
    "content",
    [
        b'{"a": NaN}', b'{"a": Infinity}', b'{"a": 1e999}', b'{"a": "\\ud800"}', b"\xef\xbb\xbf{}",
        '{"a": 1}'.encode("utf-16"), b'{"a": "\xff"}',
    ],
    ids=["nan", "infinity", "too large", "surrogate", "mark", "utf-16", "bytes"],
)  # fmt: skip
def test_a_link_holds_nothing_that_a_request_may_not(content: bytes) -> None:
    encoded = base64.urlsafe_b64encode(content).decode().rstrip("=")
    assert linked_call(f"toolgate://attachments/file.get/{encoded}") is None


def test_a_media_type_has_an_end() -> None:
    long = "text/plain" + "; a=" + "x" * 5000
    assert Attachment.of(b"", media_type=long).content_type == "application/octet-stream"

"""`toolgate call` saves what a tool hands over, and never where it should not."""

import base64
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests import preloaded
from tests.patience import PATIENT

pytestmark = pytest.mark.usefixtures("tools")

TOOLS = '''
from pydantic import Field

from toolgate.extend import Attachment, HandlerContext, Input, Output, tool


class ReportName(Input):
    name: str = Field("../report.pdf", description="The name it says it has.")


class Report(Output):
    pages: int
    content: Attachment | None


@tool(annotations={"readOnlyHint": True})
async def get_report(ctx: HandlerContext, args: ReportName) -> Report:
    """Get the report."""
    if args.name == "none":
        return Report(pages=0, content=None)
    attachment = Attachment.of(b"%PDF\\x00", media_type="application/pdf", name=args.name)
    return Report(pages=3, content=attachment)


tools = [get_report]
'''
DATA = b"%PDF\x00"
WHOLE = b'{"pages":3,"content":"%b"}\n' % base64.b64encode(DATA)


@pytest.fixture
def tools(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)


@pytest.fixture
def call(cli: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("TOOLGATE_EXTEND__TOOLS", "tools.py")
    return lambda *arguments: cli("call", "get_report", *arguments)


def test_a_pipe_gets_base64_as_on_every_transport(call: Any, tmp_path: Path) -> None:
    called = call()
    assert (called.code, called.out.encode()) == (0, WHOLE)
    assert not (tmp_path / "report.pdf").exists()


@pytest.mark.parametrize("save", ["a.pdf", ".", "sub", "sub/b.pdf"])
def test_it_is_saved_where_it_should_be(call: Any, tmp_path: Path, save: str) -> None:
    (tmp_path / "sub").mkdir()
    called = call("--save", save)
    path = tmp_path / save
    path = path / "attachment-report.pdf" if path.is_dir() else path
    assert path.read_bytes() == DATA
    assert (called.code, called.json) == (0, {"pages": 3})
    assert called.err == f"content: 5 bytes in {path.relative_to(tmp_path)}\n"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--save", "new/"], "There is no folder new."),
        (["--save", "new/a.pdf"], "There is no folder new."),
        (["--save", "a.pdf/"], "There is no folder a.pdf."),
        (["--save", ""], "--save needs a file, a folder, or - for stdout."),
        (["--save", "b.pdf", "--dry-run"], "A dry run stores nothing."),
    ],
    ids=["folder", "in a folder", "file", "nothing", "dry run"],
)
def test_a_place_where_nothing_can_be_saved_is_told_before_the_call(
    call: Any, cli: Any, tmp_path: Path, words: list[str], told: str
) -> None:
    (tmp_path / "a.pdf").write_text("mine")
    before = sorted(tmp_path.iterdir())
    audited = cli("audit", "--json").out
    refused = call(*words)
    assert (refused.code, refused.json["error"]["message"]) == (2, told)
    assert sorted(tmp_path.iterdir()) == before
    assert cli("audit", "--json").out == audited


def test_a_file_that_is_there_is_overwritten_only_by_force(call: Any, tmp_path: Path) -> None:
    mine = tmp_path / "attachment-report.pdf"
    mine.write_text("mine")
    refused = call("--save", ".")
    assert refused.code == 2
    assert "--force" in refused.json["error"]["hint"]
    assert mine.read_text() == "mine"
    assert call("--save", ".", "--force").code == 0
    assert mine.read_bytes() == DATA


@pytest.mark.parametrize("force", [(), ("--force",)], ids=["plainly", "by force"])
def test_no_name_leads_out_of_the_folder(call: Any, tmp_path: Path, force: tuple[str, ...]) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    theirs = tmp_path / "theirs"
    theirs.write_text("theirs")
    (folder / "attachment-link").symlink_to(theirs)
    for name in ("../theirs", str(theirs), "..", "a/../../theirs"):
        call(f"name={name}", "--save", "folder", "--force")
    assert call("name=link", "--save", "folder", *force).code == 2
    assert theirs.read_text() == "theirs"
    assert {one.name for one in folder.iterdir()} == {
        "attachment-link",
        "attachment-theirs",
        "attachment.pdf",
    }


@pytest.mark.parametrize("name", ["toolgate.toml", ".env", "-rf", ".bashrc", "conftest.py"])
def test_no_name_is_one_that_a_program_reads(call: Any, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    assert call(f"name={name}", "--save", "folder").code == 0
    (saved,) = folder.iterdir()
    assert saved.name == f"attachment-{name.lstrip('.')}"


@pytest.mark.parametrize("name", ["mine.cedar", "mine.CEDAR"])
def test_no_name_is_one_of_a_rule(call: Any, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "rules"
    folder.mkdir()
    refused = call(f"name={name}", "--save", "rules", "--force")
    assert refused.code == 2
    assert "--save" in refused.json["error"]["hint"]
    assert not list(folder.iterdir())
    assert call(f"name={name}", "--save", "rules/mine.cedar").code == 0


def test_a_dash_is_standard_output(process: Any, tmp_path: Path) -> None:
    called = process("call", "get_report", "--save", "-", TOOLGATE_EXTEND__TOOLS="tools.py")
    assert (called.code, called.out) == (0, DATA.decode())
    assert called.err == '{"pages":3}\n'


def test_a_tool_without_attachments_is_not_called_with_save(call: Any, cli: Any) -> None:
    refused = cli("call", "list_collections", "--save", "x")
    assert refused.code == 2
    assert refused.json["error"] == {
        "message": "list_collections hands over no attachment.",
        "hint": "Leave out --save.",
    }
    assert cli("audit", "--json").out == ""
    hidden = cli("call", "get_document", "--save", "x", "--as", "public")
    assert hidden.code == 3
    assert "attachment" not in hidden.out + hidden.err


def test_nothing_to_save_this_time_is_said_and_is_no_success(call: Any, tmp_path: Path) -> None:
    called = call("name=none", "--save", "x")
    assert (called.code, called.json) == (1, {"pages": 0, "content": None})
    assert "Nothing was saved: get_report handed over no attachment this time." in called.err
    assert not (tmp_path / "x").exists()


@dataclass(frozen=True)
class Shown:
    """What a person saw."""

    code: int
    out: str
    err: str


@pytest.fixture
def on_terminal(tmp_path: Path, environment: dict[str, str]) -> Callable[..., Shown]:
    """Call the tool with a terminal as its standard output."""

    def call(*arguments: str) -> Shown:
        ours, theirs = pty.openpty()
        called = preloaded.Popen(
            [sys.executable, "-m", "toolgate", "call", "get_report", *arguments],
            cwd=tmp_path,
            env=environment | {"TOOLGATE_EXTEND__TOOLS": "tools.py"},
            stdout=theirs,
            stderr=subprocess.PIPE,
        )
        os.close(theirs)
        _, err = called.communicate(timeout=PATIENT)
        out = os.read(ours, 65536)
        os.close(ours)
        return Shown(called.returncode, out.decode(), err.decode())

    return call


def test_on_a_terminal_nothing_is_written_unless_asked_for(
    on_terminal: Callable[..., Shown], tmp_path: Path
) -> None:
    before = {one.name for one in tmp_path.iterdir()}
    shown = on_terminal("name=toolgate.toml")
    assert shown.code == 0
    assert {one.name for one in tmp_path.iterdir()} == before
    assert shown.err == (
        "content: 5 bytes of application/pdf named toolgate.toml, not saved. "
        "Save it with --save FILE.\n"
    )
    assert "pages" in shown.out
    assert base64.b64encode(DATA).decode() not in shown.out


def test_on_a_terminal_it_is_saved_where_it_should_be(
    on_terminal: Callable[..., Shown], tmp_path: Path
) -> None:
    assert on_terminal("--save", "a.pdf").code == 0
    assert (tmp_path / "a.pdf").read_bytes() == DATA

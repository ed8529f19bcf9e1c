"""What a document says cannot command a terminal, nor hide or turn round what it shows."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import preloaded
from tests.patience import PATIENT

from toolgate.cli.output import json_for_terminal

ODD = 'a\u009b31m\u0085\u202e\u2066\u200b\x1b[31m\x07\ud800\U000e0001é\n"\\ z'
WHOLE = ODD.replace("\ud800", "")
TOOLS = f'''
from toolgate.extend import HandlerContext, Input, Output, tool


class Nothing(Input):
    pass


class Note(Output):
    text: str


@tool(annotations={{"readOnlyHint": True}})
async def get_note(ctx: HandlerContext, args: Nothing) -> Note:
    """Get the note."""
    return Note(text={WHOLE!a})


tools = [get_note]
'''


@pytest.mark.parametrize(
    "value", [ODD, [ODD, {ODD: ODD}], {"a": [1, None, "é 日本 😀"]}], ids=ascii
)
def test_json_for_a_terminal_is_the_same_json_and_printable(value: Any) -> None:
    shown = json_for_terminal(value)
    assert json.loads(shown) == value
    assert all(one.isprintable() or one == "\n" for one in shown)


def test_what_is_printable_is_shown_as_it_is() -> None:
    assert json_for_terminal(["é 日本 😀"]) == '[\n  "é 日本 😀"\n]'


@pytest.mark.usefixtures("data")
def test_a_call_on_a_terminal_escapes_what_is_not_printable(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    ours, theirs = pty.openpty()
    called = preloaded.Popen(
        [sys.executable, "-m", "toolgate", "call", "get_note"],
        cwd=tmp_path,
        env=environment | {"TOOLGATE_EXTEND__TOOLS": "tools.py", "NO_COLOR": "1", "TERM": "dumb"},
        stdout=theirs,
        stderr=subprocess.PIPE,
    )
    os.close(theirs)
    _, err = called.communicate(timeout=PATIENT)
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    assert (called.returncode, err) == (0, b"")
    assert json.loads(shown) == {"text": WHOLE}
    assert [one for one in shown if not one.isprintable() and one not in "\r\n"] == []

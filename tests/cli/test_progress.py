"""`toolgate call` shows a slow tool's progress to a person, and to nobody else."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.patience import PATIENT

TOOLS = '''
from toolgate.extend import HandlerContext, tool


@tool(slow=True, seconds=600, annotations={"readOnlyHint": True}, output_schema={"type": "object"})
async def pack_boxes(ctx: HandlerContext, args) -> dict:
    """Pack boxes."""
    await ctx.progress(1, 4, "one [bold]box\\x1b[31m")
    await ctx.progress(2, 4)
    return {"packed": 4}


tools = [pack_boxes]
'''


@pytest.fixture
def tools(data: Path, tmp_path: Path) -> str:
    (tmp_path / "tools.py").write_text(TOOLS)
    return "tools.py"


def test_a_terminal_shows_progress_beside_the_result(
    tools: str, tmp_path: Path, environment: dict[str, str]
) -> None:
    ours, theirs = pty.openpty()
    called = subprocess.Popen(
        [sys.executable, "-m", "toolgate", "call", "pack_boxes"],
        cwd=tmp_path,
        env=environment | {"TOOLGATE_EXTEND__TOOLS": tools, "TERM": "xterm-256color"},
        stdout=subprocess.PIPE,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:
        pass  # how a terminal says that the other side is gone
    os.close(ours)
    out, _ = called.communicate(timeout=PATIENT)
    assert (called.returncode, out) == (0, b'{"packed":4}\n')
    assert b"one [bold]box\\x1b[31m" in shown, "neither markup nor what moves the cursor"
    assert b"50%" in shown


def test_a_pipe_gets_the_result_alone(tools: str, process: Callable[..., Any]) -> None:
    called = process("call", "pack_boxes", TOOLGATE_EXTEND__TOOLS=tools)
    assert (called.code, called.out, called.err) == (0, '{"packed":4}\n', "")

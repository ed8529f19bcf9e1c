"""A result with an integer that JSON clients could not read is an error in the pack's words."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import Field
from tests.gate.tools import a_tool, answering, offer

from toolgate.gate.attachments import Attachment
from toolgate.gate.context import Context
from toolgate.gate.tool import Output
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio


class Counted(Output):
    """A file, and a number beside it."""

    count: int = Field(description="Any.")
    file: Attachment = Field(description="Any.")


async def counted(ctx: Context[Any], args: Any) -> Counted:
    return Counted(count=2**64, file=Attachment.of(b"Hello"))


async def test_an_integer_over_64_bits_is_refused_and_one_below_is_sent(tmp_path: Path) -> None:
    tools = [
        a_tool("over", answering(count=2**64)),
        a_tool("below", answering(count=2**64 - 1)),
        a_tool("beside", counted, gives=Counted),
    ]
    async with opened_kit(tmp_path, plugins=offer(*tools)) as kit:
        refused = [await kit.call("over"), await kit.call("beside")]
        sent = await kit.call("below")
    for one in refused:
        assert one.status == 413
        assert "integer of more than 64 bits" in one.body["error"]["message"]
    assert sent.body["result"] == {"count": 2**64 - 1}

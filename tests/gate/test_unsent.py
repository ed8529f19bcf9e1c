"""Room for attachments that clients have not read yet: shared out, and never lost."""

from pathlib import Path
from typing import Any

import pytest
from tests.gate.files import File
from tests.gate.tools import USER, a_tool, offer

from toolgate.gate.attachments import Attachment
from toolgate.gate.errors import RateLimited
from toolgate.gate.principal import Role
from toolgate.gate.unsent import Lease, UnsentBytes
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio

JANE, JOE, ANN = "user:jane", "user:joe", "user:ann"


def taken(room: UnsentBytes, caller: str, size: int = 10) -> list[Lease]:
    """All that a caller gets."""
    leases: list[Lease] = []
    try:
        while True:
            leases.append(room.take(caller, size))
    except RateLimited:
        return leases


def test_one_caller_leaves_room_to_the_next() -> None:
    room = UnsentBytes(100)
    kept = [taken(room, caller) for caller in (JANE, JOE, ANN)]
    assert [len(one) for one in kept] == [5, 3, 1]


def test_who_has_too_much_is_told_to_read_it_and_others_to_wait() -> None:
    room = UnsentBytes(100)
    kept = taken(room, JANE)
    with pytest.raises(RateLimited, match="You have not read 50 bytes") as refused:
        room.take(JANE, 10)
    assert refused.value.retry_after == 5
    with pytest.raises(RateLimited, match="Other callers"):
        room.take(JOE, 60)
    del kept


def test_one_that_is_larger_than_all_room_gets_it_alone() -> None:
    room = UnsentBytes(100)
    with room.take(JANE, 500), pytest.raises(RateLimited):
        room.take(JOE, 1)
    with room.take(JOE, 500):
        pass


def test_room_is_given_back_once() -> None:
    room = UnsentBytes(100)
    kept = taken(room, JANE)
    for _ in range(2):
        kept[0].release()
    assert len(taken(room, JANE)) == 1


def test_who_drops_an_attachment_gives_its_room_back() -> None:
    room = UnsentBytes(100)
    taken(room, JANE)
    assert len(taken(room, JANE)) == 5


async def test_room_is_taken_before_the_bytes_are_read(tmp_path: Path) -> None:
    reads = 0

    async def run(ctx: Any, args: Any) -> File:
        async def read() -> bytes:
            nonlocal reads
            reads += 1
            if ctx.principal is USER:
                raise ValueError("unreadable")
            return b"x" * 1000

        return File(path="x", content_bytes_base64=Attachment(size=1000, read=read))

    plugins = offer(a_tool("read", run, gives=File, role=Role.USER))
    kit_of = opened_kit(tmp_path, plugins=plugins, limits__unsent_attachment_bytes=2000)
    async with kit_of as kit:
        for _ in range(3):
            assert (await kit.call("read", USER)).error_type == "internal_error"
        kept = [await kit.call("read")]
        refused = await kit.call("read")
        assert (refused.error_type, refused.status) == ("rate_limited", 429)
        assert reads == 3 + 1
        del kept[:]
        assert (await kit.call("read")).error is None

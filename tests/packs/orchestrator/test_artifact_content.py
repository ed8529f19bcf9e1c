"""Base64 of artifacts: a long one keeps nobody waiting while it is decoded."""

import base64
import hashlib
import threading

import pybase64
import pytest

from toolgate.gate.errors import InvalidArguments
from toolgate.packs.orchestrator.artifacts.content import LONG_TEXT, PIECE, decoded

pytestmark = pytest.mark.anyio

SHORT, LONG = b"a" * (LONG_TEXT // 4 * 3), b"a" * (LONG_TEXT // 4 * 3 + 1)


@pytest.fixture
def decoding(monkeypatch: pytest.MonkeyPatch) -> set[int]:
    """The threads that have decoded something."""
    seen: set[int] = set()
    original = pybase64.b64decode

    def noticed(text: str, *, validate: bool = False) -> bytes:
        seen.add(threading.get_ident())
        return original(text, validate=validate)

    monkeypatch.setattr(pybase64, "b64decode", noticed)
    return seen


@pytest.mark.parametrize("data", [b"", SHORT, LONG], ids=["nothing", "short", "long"])
async def test_a_long_text_is_decoded_and_hashed_in_a_thread(
    data: bytes, decoding: set[int]
) -> None:
    found = await decoded(base64.b64encode(data).decode())
    assert (found.data, found.checksum) == (data, hashlib.sha256(data).hexdigest())
    [thread] = decoding
    assert (thread == threading.get_ident()) == (data is not LONG)


@pytest.mark.parametrize("size", [len(SHORT), len(LONG)], ids=["short", "long"])
@pytest.mark.parametrize(
    ("end", "told"),
    [("AB==", "must be zero"), ("A B=", "no spaces"), ("A\xe4==", "no spaces")],
    ids=["bits left over", "a space", "beyond ASCII"],
)
async def test_what_is_no_base64_is_refused_in_the_same_words(
    size: int, end: str, told: str
) -> None:
    with pytest.raises(InvalidArguments, match=told):
        await decoded("A" * (size // 3 * 4 - 4) + end)


@pytest.mark.parametrize("size", [57, 60, len(LONG)], ids=["a line", "more", "long"])
async def test_line_ends_are_told_as_such(size: int) -> None:
    with pytest.raises(InvalidArguments, match="no spaces or line ends; `base64 -w0`"):
        await decoded(base64.encodebytes(b"x" * size).decode())


async def test_padding_is_at_the_end_alone() -> None:
    whole = "A" * (PIECE - 4) + "AA==" + "A" * PIECE
    with pytest.raises(InvalidArguments, match="padding at the end"):
        await decoded(whole)


async def test_many_pieces_make_one_whole() -> None:
    data = bytes(range(256)) * (3 * PIECE // 256) + b"end"
    found = await decoded(base64.b64encode(data).decode())
    assert (found.data, found.checksum) == (data, hashlib.sha256(data).hexdigest())

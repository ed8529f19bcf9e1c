"""Files as arguments: read and encoded where a tool wants base64, and nowhere else."""

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from toolgate.cli.arguments import read_arguments
from toolgate.cli.problems import Stop

SCHEMA = {
    "properties": {
        "content": {"type": "string", "contentEncoding": "base64"},
        "name": {"type": "string"},
    }
}


def test_a_file_is_read_where_base64_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(bytes(range(90)))
    read = read_arguments([f"content=@{tmp_path}/a.bin", "name=@alice"], None, SCHEMA)
    assert read["content"].startswith("AAECAwQF")
    assert (len(read["content"]), read["name"]) == (120, "@alice")
    assert read_arguments(["content=AAEC"], None, SCHEMA) == {"content": "AAEC"}


def test_standard_input_is_a_file_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"\x00\x01\x02")))
    assert read_arguments(["content=@-"], None, SCHEMA) == {"content": "AAEC"}


@pytest.mark.parametrize("file", [".", "none", "a\0b"], ids=["a folder", "none", "no name"])
def test_a_file_that_cannot_be_read_is_told(file: str) -> None:
    with pytest.raises(Stop, match=r"content: the file .* cannot be read: "):
        read_arguments([f"content=@{file}"], None, SCHEMA)

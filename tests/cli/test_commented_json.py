"""A client's file keeps its comments when an entry is added."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolgate.cli.commented_json import with_item, with_member, without_comments

COMMENTED = """{
  // My servers, not "yours" {really}.
  "servers": {
    "mine": { "type": "stdio", "command": "x" }, // keep, this
    /* nothing
       else, */
  },
  "url": "http://a//b", // the end
}
"""


def test_vscodes_comments_are_kept(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / ".vscode/mcp.json"
    file.parent.mkdir()
    file.write_text(COMMENTED)
    assert cli("connect", "vscode", "--write").code == 0
    after = file.read_text()
    kept = [line.strip() for line in after.splitlines()]
    assert [line for line in COMMENTED.splitlines() if line.strip() not in kept] == []
    read = json.loads(without_comments(after))
    assert list(read["servers"]) == ["mine", "toolgate"]
    assert read["url"] == "http://a//b"
    assert [one["id"] for one in read["inputs"]] == ["toolgate-key"]
    assert file.with_name("mcp.json.bak").read_text() == COMMENTED
    assert "Nothing to change" in cli("connect", "vscode", "--write").out
    assert file.read_text() == after


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "{ // x\n}",
        '{"servers": {"toolgate": {"old": [1, 2]}, "b": 2}}',
        '{"servers": {"b": 1 /* , */ , }, "inputs": [1, // ]\n 2, ], }',
        '{"servers": {"b": 1 // last\n}, "inputs": []}',
    ],
)
def test_an_entry_is_set_and_the_rest_stays(text: str) -> None:
    before = json.loads(without_comments(text))
    made = json.loads(
        without_comments(
            with_item(with_member(text, ("servers", "toolgate"), {"x": 1}), "inputs", 3)
        )
    )
    assert made == before | {
        "servers": before.get("servers", {}) | {"toolgate": {"x": 1}},
        "inputs": [*before.get("inputs", []), 3],
    }


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(
    content=st.dictionaries(st.text(max_size=4) | st.just("s"), values, max_size=4),
    name=st.text(max_size=4),
    indent=st.none() | st.integers(0, 4),
)
def test_any_file_gets_the_entry_and_keeps_the_rest(
    content: dict[str, Any], name: str, indent: int | None
) -> None:
    if not isinstance(content.get("s", {}), dict):
        content["s"] = {}
    text = json.dumps(content, indent=indent)
    made = json.loads(without_comments(with_member(text, ("s", name), {"//": ",]"})))
    assert made == content | {"s": content.get("s", {}) | {name: {"//": ",]"}}}

"""What `--dry-run` prints of what would change."""

from typing import Any

import pytest

from toolgate.cli.diffs import note_diff
from toolgate.gate.diffs import Diff


def change(path: str, before: Any, after: Any) -> dict[str, Any]:
    return {"store": "documents", "path": path, "before": before, "after": after}


def printed(capsys: pytest.CaptureFixture[str], diff: Diff) -> list[str]:
    note_diff(diff)
    told = capsys.readouterr()
    assert told.out == ""
    return told.err.splitlines()


def test_a_change_is_told_field_by_field(capsys: pytest.CaptureFixture[str]) -> None:
    changes = [
        change("apps/a", None, {"name": "A", "tags": ["x"]}),
        change("apps/b", {"n": 1, "same": {}, "gone": None}, {"n": True, "same": {}, "new": None}),
        change("apps/c", {"n": 1}, None),
        change("apps/d", None, {}),
    ]
    assert printed(capsys, Diff(changes)) == [
        "create documents apps/a",
        '  + name: "A"',
        '  + tags: ["x"]',
        "update documents apps/b",
        "  - n: 1",
        "  + n: true",
        "  - gone: null",
        "  + new: null",
        "delete documents apps/c",
        "  - n: 1",
        "create documents apps/d",
    ]


def test_a_value_that_is_no_document_is_told_as_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    changes = [
        change("rooms/a", None, 0),
        change("rooms/a", 0, ""),
        change("rooms/a", "", {"x": 1}),
    ]
    told = printed(capsys, Diff(changes))
    assert [one for one in told if one.startswith(" ")] == [
        "  + value: 0",
        "  - value: 0",
        '  + value: ""',
        '  - value: ""',
        "  + x: 1",
    ]


def test_what_is_too_long_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    long = change("apps/a", None, {"text": "x" * 70_000})
    assert printed(capsys, Diff([long, long], 1)) == ["3 more changes are not shown"]


def test_nothing_in_it_commands_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    odd = "\x1b[31m\u202e\x9b"
    told = printed(capsys, Diff([change(f"apps/{odd}", None, {odd: odd})]))
    assert len(told) == 2
    assert all(line.isprintable() for line in told)

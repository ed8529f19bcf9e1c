"""A backup whose first line was altered is refused in a sentence, and nothing is restored."""

import gzip
import io
import json
import tracemalloc
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from tests.backups.test_refusals import chain, packed

from toolgate.backups.archive import MAX_HEAD, ArchiveReader, ArchiveWriter, BadBackup
from toolgate.backups.head import checked_head
from toolgate.cli.main import run

Line = dict[str, Any]
WRONG: dict[str, Any] = {
    "null": None,
    "true": True,
    "number": 7,
    "negative": -1,
    "fraction": 0.5,
    "large": 10**18,
    "text": "x",
    "empty text": "",
    "list": [1],
    "list of lists": [["a", 1]],
    "map": {"a": 1},
    "map of maps": {"": {"a": {}}},
}
RIGHT: dict[str, set[str]] = {
    "toolgate_backup": {"number", "large"},  # of another version
    "made_by": {"text", "empty text"},
    "moment.snapshot": {"null", "text", "empty text"},
    "without_documents": {"null", "text", "empty text"},
    "strangers": set(),
    "strangers.0": {"text", "empty text"},
    "revisions.": {"text"},  # of another version
    "tables.0.name": {"text"},
    "tables.0.columns.0.0": {"text"},
}
"""What each field may well be; with a version, or names, that are then refused as such."""


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    folder = tmp_path_factory.mktemp("made")
    assert run(["db", "upgrade", "--data", str(folder / "a")]) == 0
    assert run(["backup", str(folder / "made.gz"), "--data", str(folder / "a")]) == 0
    found = gzip.decompress((folder / "made.gz").read_bytes()).splitlines()
    made = [json.loads(line) for line in found]
    made[0]["strangers"], made[0]["moment"]["snapshot"] = ["others"], "1:2:"
    return made


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Each field of a line; of a list, its first."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value[:1])
    for key, one in pairs:
        yield (*at, key)
        if isinstance(one, dict | list):
            yield from places(one, (*at, key))


def mutations(head: Line) -> Iterator[tuple[str, Line]]:
    """The line with one field after the other missing, wrong, or beside one that is none."""
    for place in places(head):
        name = ".".join(map(str, place))
        *above, last = place
        for kind, wrong in WRONG.items():
            if kind in RIGHT.get(name, ()):
                continue
            other = deepcopy(head)
            within(other, above)[last] = wrong
            yield f"{name}: {kind}", other
        other = deepcopy(head)
        if name not in ("strangers.0", "tables.0", "moment.snapshot", "revisions.backend"):
            del within(other, above)[last]
            yield f"{name}: missing", other
        if isinstance(within(head, above), dict) and above[:1] != ["revisions"]:
            other = deepcopy(head)
            within(other, above)["more"] = 1
            yield f"{name}: one more beside it", other


def within(value: Any, place: list[Any]) -> Any:
    for key in place:
        value = value[key]
    return value


def restored(lines: list[Any], folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """What a restore says of these lines, whose digests are right."""
    lines[-1]["sha256"] = chain(lines)
    file = folder / "altered.gz"
    file.write_bytes(gzip.compress(b"".join(map(packed, lines)), 1))
    code = run(["restore", str(file), "--data", str(folder / "b")])
    return code, capsys.readouterr().err


def test_no_altered_field_of_the_first_line_is_believed(lines: list[Any]) -> None:
    every = dict(mutations(lines[0]))
    assert len(every) > 150
    believed: list[str] = []
    for what, head in every.items():
        try:
            reader = ArchiveReader(packing([head]))
            checked_head(reader.head)
            believed.append(what)
        except BadBackup as problem:
            told = str(problem)
            assert told.endswith((". Use another one.", "that `toolgate backup` wrote.")), what
    # What is whole without them is compared with the schema and with the rest of the file.
    left_out = ("revisions.", "tables.0.columns.0")
    assert [one for one in believed if not one.startswith(left_out)] == []


@pytest.mark.parametrize("name", ["moment", "moment.time", "tables", "revisions", "database"])
def test_a_restore_of_an_altered_first_line_says_so_and_changes_nothing(
    lines: list[Any], tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    altered = deepcopy(lines)
    *above, last = name.split(".")
    del within(altered[0], above)[last]
    code, said = restored(altered, tmp_path, capsys)
    assert code == 1
    assert f"altered after it was made (its first line: {name} is missing). Use another" in said
    assert "Nothing was changed." in said
    assert not (tmp_path / "b" / "toolgate.db").exists()


def other_version(lines: list[Any]) -> None:
    lines[0]["revisions"][""] = "x"


def no_revision(lines: list[Any]) -> None:
    del lines[0]["revisions"][""]


def column_missing(lines: list[Any]) -> None:
    del lines[0]["tables"][0]["columns"][0]


def foreign_table(lines: list[Any]) -> None:
    lines[0]["tables"].append({"name": "customers", "columns": [["id", "integer"]]})


def untold_table(lines: list[Any]) -> None:
    lines[0]["tables"].pop()


def other_column(lines: list[Any]) -> None:
    lines[0]["tables"][0]["columns"][0][0] = "x"


def table_twice(lines: list[Any]) -> None:
    lines[0]["tables"].append(lines[0]["tables"][0])


def no_sequences(lines: list[Any]) -> None:
    del lines[-1]["sequences"]


def odd_sequences(lines: list[Any]) -> None:
    lines[-1]["sequences"] = {"audit": "many"}


def table_that_is_none(lines: list[Any]) -> None:
    lines[1] = {"table": 7}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (other_version, "Use the version of toolgate that made the backup"),
        (no_revision, "it names no schema"),
        (column_missing, "has other columns than its schema"),
        (foreign_table, "table customers is none of toolgate's"),
        (untold_table, "is not in its first line"),
        (other_column, "has other columns than its schema"),
        (table_twice, "stands in it twice"),
        (no_sequences, "its last line: sequences is missing"),
        (odd_sequences, "its last line: sequences.audit is not what it must be"),
        (table_that_is_none, "a line out of its place"),
    ],
)
def test_what_does_not_fit_the_rest_is_refused(
    lines: list[Any], tmp_path: Path, change: Any, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    altered = deepcopy(lines)
    change(altered)
    code, said = restored(altered, tmp_path, capsys)
    assert (code, told in said, "Nothing was changed." in said) == (1, True, True), said
    assert not (tmp_path / "b" / "toolgate.db").exists()


def packing(lines: list[Any], raw: bytes = b"") -> Any:
    return io.BytesIO(gzip.compress(raw or b"".join(map(packed, lines)), 1))


def test_a_first_line_without_end_is_not_read_to_its_end() -> None:
    file = packing([], b'{"toolgate_backup":1,"made_by":"' + b"x" * 50_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(BadBackup, match="a line too long"):
            ArchiveReader(file)
        assert tracemalloc.get_traced_memory()[1] < 8 * MAX_HEAD
    finally:
        tracemalloc.stop()


def test_rows_are_handed_over_by_their_bytes() -> None:
    parts: list[bytes] = []
    writer = ArchiveWriter(parts.append, {})
    writer.begin("t")
    for _ in range(40):
        writer.rows([["x" * 400_000]])
    writer.end()
    writer.close()
    reader = ArchiveReader(packing([], gzip.decompress(b"".join(parts))))
    sizes = [len(some) for _ in reader.tables() for some in reader.rows("t", 1, 500)]
    assert sum(sizes) == 40
    assert max(sizes) == 3


def test_a_row_that_no_restore_would_take_is_not_backed_up() -> None:
    writer = ArchiveWriter(lambda _: None, {})
    writer.begin("t")
    with pytest.raises(BadBackup, match="A row of t has more than 64 MiB"):
        writer.rows([["x" * 64 * 1024**2]])

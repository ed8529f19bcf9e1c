"""A file of collections that is wrong is refused before the start, with what to write."""

from pathlib import Path
from typing import Any

import pytest

from toolgate.packs.appdata.collections import read_file
from toolgate.setting_types import BadSettings

HEAD = '[collections.orders]\ndescription = "Orders"\n'
TABLE = 'Write a table [collections.NAME] with description = "What it holds".'

WRONG = {
    "not TOML": ("[collections.orders\n", "it is not valid TOML: ", "(at line 1, column 20)"),
    "empty": ("", f"collections is required. {TABLE}"),
    "no collection": ("[collections]\n", f"collections must have at least 1 item. {TABLE}"),
    "not a table": (
        '[collections]\norders = "x"\n',
        "collections.orders must be an object.",
        TABLE,
    ),
    "twice": (f"{HEAD}\n{HEAD}", "it is not valid TOML: ", "(at line 4, column 20)"),
    "no description": (
        "[collections.orders]\n",
        'collections.orders.description is required. Write description = "What it holds".',
    ),
    "a key that is unknown": (
        f"{HEAD}writeable = true\n",
        "collections.orders.writeable is not a known key. Did you mean 'writable'?",
    ),
    "a table that is unknown": (
        f"{HEAD}[tables]\n",
        "tables is not a known key. Keys: collections.",
    ),
    "a key of a field that is unknown": (
        f'{HEAD}fields.total = {{ typ = "number" }}\n',
        "collections.orders.fields.total.typ is not a known key. Did you mean 'type'?",
    ),
    "a key of a field that is misspelled": (
        f'{HEAD}fields.total = {{ type = "number", requried = true }}\n',
        "collections.orders.fields.total.requried is not a known key. Did you mean 'required'?",
    ),
    "a field that is only a type": (
        f'{HEAD}fields.total = "number"\n',
        "collections.orders.fields.total must be an object.",
        'Write total = { type = "string", description = "What it holds" }.',
    ),
    "no type": (
        f'{HEAD}fields.total = {{ type = "" }}\n',
        'collections.orders.fields.total.type is required. Write type = "string".',
    ),
    "a text instead of true": (
        f'{HEAD}writable = "yes"\n',
        "collections.orders.writable must be true or false. Write writable = true.",
    ),
    "a name that no store has": (
        '[collections."users/a"]\ndescription = "x"\n',
        "collections.users/a: the name must not contain '/' or a NUL character.",
    ),
    "no name": (
        '[collections.""]\ndescription = "x"\n',
        "the name must not be empty.",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_with_what_to_write(tmp_path: Path, case: str) -> None:
    text, *told = WRONG[case]
    file = tmp_path / "collections.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(BadSettings) as refused:
        read_file(file)
    assert str(refused.value).startswith(f"Setting appdata.collections ({file}): ")
    assert all(words in str(refused.value) for words in told), str(refused.value)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    missing = tmp_path / "missing.toml"
    with pytest.raises(BadSettings, match=r"no such file\. `toolgate appdata discover --file "):
        read_file(missing)
    with pytest.raises(BadSettings, match=r": is a directory\."):
        read_file(tmp_path)
    missing.write_bytes(b"\xff")
    with pytest.raises(BadSettings, match=r"not UTF-8 text"):
        read_file(missing)


def test_the_order_of_the_file_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "collections.toml"
    fields = 'fields.z = { type = "string" }\nfields.a = { type = "number", required = true }\n'
    file.write_text(f'{HEAD}{fields}[collections.a]\ndescription = "A"\n', encoding="utf-8")
    found = read_file(file)
    assert list(found.by_name) == ["orders", "a"]
    assert [(one.name, one.required) for one in found.by_name["orders"].fields] == [
        ("z", False),
        ("a", True),
    ]
    assert found.writable == []


def test_a_broken_file_stops_commands_and_is_found_by_doctor(cli: Any, tmp_path: Path) -> None:
    (tmp_path / "settings").mkdir()
    config = tmp_path / "settings/toolgate.toml"
    config.write_text('data = "../.toolgate"\nappdata.collections = "own.toml"\n')
    (tmp_path / "settings/own.toml").write_text(f"{HEAD}writeable = true\n")
    told = "collections.orders.writeable is not a known key. Did you mean 'writable'?"
    assert cli("db", "upgrade", "--config", str(config)).code == 0
    stopped = cli("tools", "--config", str(config))
    assert (stopped.code, told in stopped.err, "own.toml" in stopped.err) == (2, True, True)
    report = cli("doctor", "--config", str(config), "--json")
    [found] = [one["says"] for one in report.json if one["state"] == "fail"]
    assert (report.code, told in found) == (1, True)

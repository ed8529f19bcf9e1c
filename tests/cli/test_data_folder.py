"""Where the data is: never made by mistake, and its owner's alone."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolgate.data_folder import write_private

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o777], ids=oct)
def umask(request: pytest.FixtureRequest) -> Iterator[None]:
    before = os.umask(request.param)
    yield
    os.umask(before)


# No data here -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        ["keys", "create", "--role", "admin"],
        ["keys", "list"],
        ["keys", "revoke", "x"],
        ["audit"],
        ["audit", "verify"],
        ["grants", "list"],
        ["grants", "end", "x"],
        ["tools"],
        ["tools", "show", "get_document"],
        ["call", "list_collections"],
        ["why", "admin", "get_document"],
        ["mcp"],
        ["mcp", "--key", "tg_0_0", "--data", "wrong"],
        ["mcp", "--data", "wrong"],
    ],
    ids=" ".join,
)
def test_a_command_in_the_wrong_folder_makes_no_data(
    cli: Any, tmp_path: Path, command: list[str]
) -> None:
    ended = cli(*command)
    told, other = (ended.out, ended.err) if command[0] == "call" else (ended.err, ended.out)
    assert (ended.code, other) == (2, "")
    looked = tmp_path / ("wrong" if "wrong" in command else ".toolgate")
    assert f"no data in the folder {looked}: toolgate.db is not there" in told
    assert "--data" in told
    assert "--config" in told
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_no_data(cli: Any, tmp_path: Path) -> None:
    (tmp_path / ".toolgate").mkdir()
    (tmp_path / ".toolgate/toolgate.db").touch()
    ended = cli("keys", "create", "--role", "admin")
    assert (ended.code, ended.out) == (2, "")
    assert "toolgate.db holds no data of toolgate" in ended.err


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        (["--data", "new"], {"TOOLGATE_DATABASE__URL": "sqlite:///new/toolgate.db"}),
        ([], {"TOOLGATE_ADMIN_KEY": "k" * 32}),
    ],
)
def test_stdio_makes_data_where_somebody_said_so(
    process: Any, tmp_path: Path, arguments: list[str], variables: dict[str, str]
) -> None:
    ended = process("mcp", *arguments, **variables)
    assert ended.code == 0, ended.err
    assert list(tmp_path.glob("*/toolgate.db"))


def test_stdio_makes_no_data_in_the_folder_that_a_variable_names(
    process: Any, tmp_path: Path
) -> None:
    ended = process("mcp", TOOLGATE_DATA="wrong", TOOLGATE_ADMIN_KEY="k" * 32)
    assert ended.code == 2
    assert f"no data in the folder {tmp_path / 'wrong'}" in ended.err
    assert not (tmp_path / "wrong").exists()


# Modes ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("umask")
def test_new_data_is_its_owners_alone_whatever_the_umask(cli: Any, tmp_path: Path) -> None:
    assert cli("db", "upgrade").code == 0
    assert mode(tmp_path / ".toolgate") == 0o700
    assert mode(tmp_path / ".toolgate/toolgate.db") == 0o600


def test_a_server_keeps_everything_to_its_owner(served: Any, tmp_path: Path) -> None:
    with served() as running:
        assert running.call("list_collections")[0] == 200
        modes = {one.name: oct(mode(one)) for one in (tmp_path / ".toolgate").iterdir()}
    assert {"toolgate.db", "toolgate.db-wal", "toolgate.db-shm", "admin-key"} <= modes.keys()
    assert set(modes.values()) == {"0o600"}


def test_data_of_an_older_version_is_closed_at_start_and_told(
    served: Any, cli: Any, data: Path
) -> None:
    data.chmod(0o755)
    (data / "toolgate.db").chmod(0o644)
    failed = [one for one in cli("doctor", "--json").json if one["state"] == "fail"]
    assert [one["check"] for one in failed] == ["file modes"]
    assert "chmod 700 .toolgate" in failed[0]["says"]
    with served() as running:
        assert (mode(data), mode(data / "toolgate.db")) == (0o700, 0o600)
    assert ".toolgate could be read by others; it is now the owner's alone." in running.ended.err
    assert "fail" not in [one["state"] for one in cli("doctor", "--json").json]


def test_a_folder_that_others_use_too_is_left_open(cli: Any, data: Path) -> None:
    (data / "theirs.txt").touch()
    data.chmod(0o755)
    (data / "toolgate.db").chmod(0o644)
    assert cli("keys", "list").code == 0
    assert (mode(data), mode(data / "toolgate.db")) == (0o755, 0o600)


@pytest.mark.usefixtures("umask")
def test_a_private_file_takes_the_place_of_an_open_one(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.touch()
    file.chmod(0o644)
    write_private(file, "secret")
    assert (mode(file), file.read_text()) == (0o600, "secret")


def test_a_clients_file_with_a_key_in_it_is_its_owners_alone(cli: Any, tmp_path: Path) -> None:
    file = tmp_path / ".cursor/mcp.json"
    cli("connect", "cursor", "--write", "--key", "tg_1_2")
    assert mode(file) == 0o600
    file.write_text("{}")
    file.chmod(0o644)
    cli("connect", "cursor", "--write")
    assert mode(file) == 0o644
    cli("connect", "cursor", "--write", "--key", "tg_1_2")
    assert (mode(file), mode(file.with_name("mcp.json.bak"))) == (0o600, 0o600)

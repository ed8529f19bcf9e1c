"""A `.env` beside the settings file: below the environment, above the file, ours only."""

from pathlib import Path
from typing import Any

import pytest

from toolgate import env_file
from toolgate.settings import BadSettings, read_settings

KEY = "a-key-of-more-than-16-characters"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project's folder, where the command runs."""
    monkeypatch.chdir(tmp_path)
    Path("toolgate.toml").write_text("[server]\nport = 1111\n")
    return tmp_path


def loaded(env: str, file: Path | None = None, **environment: str) -> Any:
    Path(".env").write_text(env, encoding="utf-8")
    return read_settings(file=file, environment=environment)


def test_it_counts_more_than_the_file_and_less_than_the_environment() -> None:
    assert loaded("").server.port == 1111
    assert loaded("TOOLGATE_SERVER__PORT=2222").server.port == 2222
    both = loaded("TOOLGATE_SERVER__PORT=2222", TOOLGATE_SERVER__PORT="3333")
    assert both.server.port == 3333


def test_the_admin_key_of_a_project_made_for_the_backend_manager() -> None:
    assert loaded(f"BACKEND_MANAGER_KEY={KEY}").admin_key == KEY
    other = "another-key-of-many-characters"
    assert loaded(f"BACKEND_MANAGER_KEY={KEY}", TOOLGATE_ADMIN_KEY=other).admin_key == other


def test_names_of_other_programs_are_ignored() -> None:
    assert loaded('PATH=/x\nSTRIPE_SECRET="sk\n x"\nnot an assignment\n').server.port == 1111


def test_a_name_of_ours_that_does_not_exist_is_an_error_as_in_the_environment() -> None:
    with pytest.raises(BadSettings, match=r"Unknown setting server.prot. Did you mean server.port"):
        loaded("TOOLGATE_SERVER__PROT=1")


@pytest.mark.parametrize(
    "line", ["TOOLGATE_ADMIN_KEY: secret", "BACKEND_MANAGER_KEY 'secret", "TOOLGATE_DATA='secret"]
)
def test_a_line_of_ours_that_cannot_be_read_is_named_and_not_shown(line: str) -> None:
    with pytest.raises(BadSettings) as refused:
        loaded(f"# first\n\n{line}\n")
    name = line.replace(":", " ").replace("=", " ").split()[0]
    assert str(refused.value) == f".env:3: write {name}=value on one line, or in quotes."


def test_only_the_one_beside_the_settings_file_counts(folder: Path) -> None:
    inner = folder / "inner"
    inner.mkdir()
    (inner / "toolgate.toml").write_text("")
    found = loaded("TOOLGATE_SERVER__PORT=2222", inner / "toolgate.toml")
    assert found.server.port == 8765
    (inner / ".env").write_text("TOOLGATE_SERVER__PORT=4444")
    assert read_settings(file=inner / "toolgate.toml", environment={}).server.port == 4444
    Path("toolgate.toml").unlink()
    assert read_settings(environment={}).server.port == 8765, (
        "no settings file, so nothing is beside it"
    )


def test_a_path_in_it_starts_from_its_folder(folder: Path) -> None:
    found = loaded("TOOLGATE_EXTEND__TOOLS=tools.yaml", folder / "toolgate.toml")
    assert found.extend.tools == (folder / "tools.yaml",)
    found = loaded("TOOLGATE_EXTEND__TOOLS=a.yaml,/b.py", folder / "toolgate.toml")
    assert found.extend.tools == (folder / "a.yaml", Path("/b.py"))


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("A=b", "b"),
        ("  export A = b  ", "b"),
        ("A=", ""),
        ("A=  # nothing", ""),
        ("A=b # a comment", "b"),
        ("A='b # no comment'", "b # no comment"),
        ('A="b # no comment" # one', "b # no comment"),
        ('A="two\\nlines"', "two\nlines"),
        ("A='two\\nlines'", "two\\nlines"),
        ('A="two\nlines"', "two\nlines"),
        ('A="a \\"quote\\" and \\\\"', 'a "quote" and \\'),
        ('A={"type": "service_account"}', '{"type": "service_account"}'),
        ("A=$HOME ${HOME}", "$HOME ${HOME}"),
        ("\ufeffA=b\r\n", "b"),
        ("A=1\nA=2", "2"),
        ("A=b=c", "b=c"),
    ],
)
def test_what_a_line_says(written: str, value: str) -> None:
    assert env_file.parse(written) == ({"A": value}, [])


def test_lines_are_counted_through_values_of_several_lines() -> None:
    found, rest = env_file.parse('A="1\n2\n3"\n\nwhat\nB=4\n')
    assert found == {"A": "1\n2\n3", "B": "4"}
    assert rest == [(5, "what")]

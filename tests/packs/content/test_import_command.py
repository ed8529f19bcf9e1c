"""`toolgate content import`: what it says, and its exit codes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

GOOD = "entityType,title,slug\nconcept,RAG,rag\nguide,Build,build\n"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], str]:
    def file(name: str, text: str) -> str:
        (tmp_path / name).write_text(text, encoding="utf-8")
        return name

    return file


@pytest.fixture
def run(cli: Callable[..., Any]) -> Callable[..., Any]:
    def imported(*arguments: str) -> Any:
        return cli("content", "import", *arguments, "--project", "p")

    return imported


def test_rows_are_stored_and_counted(run: Any, write: Any) -> None:
    made = run(write("e.csv", GOOD), "--create-project", "P")
    assert (made.code, made.out, made.err) == (0, "Done: 2 rows of entities stored in p.\n", "")
    again = run("e.csv", "--json")
    assert again.json == {
        "file": "e.csv",
        "kind": "entities",
        "project": "p",
        "stored": 2,
        "refused": [],
    }
    relation = '{"relationType":"GUIDE_USES_CONCEPT","from":"guide/build","to":"concept/rag"}\n'
    assert run(write("r.jsonl", relation)).out == "Done: 1 row of relations stored in p.\n"
    tried = run("e.csv", "--dry-run")
    assert tried.out == "Done: 2 rows of entities would be stored in p.\n"


def test_what_was_imported_is_what_the_tools_answer(cli: Any, run: Any, write: Any) -> None:
    run(write("e.csv", GOOD), "--create-project", "P")
    [project] = cli("call", "list_projects").json["data"]
    assert (project["slug"], project["name"]) == ("p", "P")


def test_refused_rows_are_listed_up_to_fifty(run: Any, write: Any) -> None:
    bad = "".join(f"thing,T,t-{number}\n" for number in range(53))
    ended = run(write("e.csv", GOOD + bad), "--create-project", "P")
    lines = ended.err.splitlines()
    assert (ended.code, ended.out) == (1, "")
    assert lines[0] == "Error: 53 of 55 rows of e.csv refused, so nothing was stored."
    assert lines[1].startswith("  line 4: entityType must be 'guide', 'concept'")
    assert (len(lines), lines[-1]) == (52, "  and 3 more")
    told = run("e.csv", "--create-project", "P", "--json")
    assert (told.code, told.json["stored"], len(told.json["refused"])) == (1, 0, 53)
    assert told.json["refused"][0]["line"] == 4


def test_what_a_file_holds_cannot_steer_the_terminal(run: Any, write: Any) -> None:
    row = '{"entityType":"news","title":"T","slug":"t","\\u001b[2J":1}\n'
    assert "\x1b" not in run(write("e.jsonl", row), "--create-project", "P").err


def test_wrong_command_lines(run: Any, write: Any) -> None:
    missing = run("none.csv")
    assert (missing.code, missing.err) == (2, "Error: There is no file none.csv.\n")
    write("e.csv", GOOD)
    assert "There is no kind 'x'" in run("e.csv", "--kind", "x").err
    assert "There is no data in the folder" in run("e.csv").err


def test_an_unknown_project_names_the_known_ones(cli: Any, run: Any, write: Any) -> None:
    run(write("e.csv", GOOD), "--create-project", "P")
    ended = cli("content", "import", "e.csv", "--project", "q")
    assert ended.code == 2
    assert ended.err == (
        "Error: There is no project 'q' (projects: p); --create-project NAME creates it.\n"
    )


def test_a_file_that_cannot_be_read(run: Any, write: Any) -> None:
    ended = run(write("e.csv", "entityType,titel,slug\nnews,A,a\n"), "--create-project", "P")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == (
        "Error: Rows of entities have no such columns: 'titel' (did you mean 'title'?). "
        "Nothing was stored.\n"
    )


def test_a_dry_run_makes_neither_database_nor_folder(
    cli: Any, run: Any, write: Any, tmp_path: Path
) -> None:
    write("e.csv", GOOD)
    asked = ("e.csv", "--create-project", "P", "--dry-run")
    tried = run(*asked)
    assert (tried.code, tried.err) == (0, "")
    told, first = tried.out.splitlines()
    assert told == "Done: 2 rows of entities would be stored in p."
    assert first.startswith("Database ")
    assert first.endswith("toolgate.db and project p would be created first.")
    assert run(*asked, "--data", "a/b", "--json").json["stored"] == 0
    bad = run(write("bad.csv", GOOD + "thing,T,t\n"), *asked[1:])
    assert (bad.code, bad.out) == (1, "")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["bad.csv", "e.csv"]
    run("e.csv", "--create-project", "P")
    assert run(*asked).out.splitlines() == [told]
    other = cli("content", "import", *asked, "--project", "q")
    assert other.out.splitlines()[1] == "Project q would be created first."


def test_an_export_of_queries_alone_names_its_page(run: Any, write: Any) -> None:
    export = write("q.csv", "Top queries,Clicks,Impressions,CTR,Position\nrag,1,2,50%,3\n")
    asked = (export, "--create-project", "P", "--start", "2025-06-01", "--end", "2025-06-07")
    refused = run(*asked)
    assert (refused.code, refused.err) == (
        1,
        "Error: Rows of performance need also: pageUrl. Say it with --page. Nothing was stored.\n",
    )
    done = run(*asked, "--page", "https://x.example/rag")
    assert done.out == "Done: 1 row of performance stored in p.\n"

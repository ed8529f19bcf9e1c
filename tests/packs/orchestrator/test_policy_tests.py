"""`toolgate why` with arguments, and rule tests as files."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

TASK = "00000000-0000-4000-8000-0000000000b1"
OTHER = "00000000-0000-4000-8000-0000000000b2"
DENIED = "Access rules do not allow this call."


@pytest.fixture
def team(cli: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Commands where pack `orchestrator` is enabled and its tables are there."""
    monkeypatch.setenv("TOOLGATE_PACKS__ENABLED", "orchestrator")
    assert cli("db", "upgrade").code == 0
    return cli


@pytest.fixture
def key(team: Any) -> str:
    bound = ("--user", "alice", "--task", TASK)
    return team("keys", "create", "--agent", "pm", *bound, "--json").json["id"]


@pytest.mark.parametrize(
    ("arguments", "code", "verdict", "rule"),
    [
        (f'{{"task_id": "{TASK}"}}', 0, "allowed", "pm-runs-the-project"),
        (f'{{"task_id": "{OTHER}"}}', 3, "not found", "out-of-scope"),
        ('{"task_id": "x"}', 3, "invalid", "invalid-arguments"),
        ("{}", 3, "invalid", "invalid-arguments"),
    ],
    ids=["own", "foreign", "no-uuid", "missing"],
)
def test_why_with_arguments_tells_what_would_become_of_the_call(
    team: Any, key: str, arguments: str, code: int, verdict: str, rule: str
) -> None:
    ended = team("why", f"agent:pm:{key}", "db.task.get", "--args", arguments, "--json")
    assert (ended.code, ended.json["verdict"], ended.json["rule"]) == (code, verdict, rule)
    assert ended.json["allowed"] is (code == 0)
    told = team("why", f"agent:pm:{key}", "db.task.get", "--args", arguments).out
    assert rule in told
    assert told.lower().startswith(verdict)


def test_why_asks_the_access_rules_too(team: Any, key: str) -> None:
    made = team(
        "call",
        "operator.access_rule.create",
        "--json",
        '{"effect": "deny", "resource_pattern": "db.task.*", "subject_type": "agent",'
        f' "subject_id": "key:{key}"}}',
    )
    rule = made.json["result"]["id"]
    ended = team("why", f"key:{key}", "db.task.get", "--args", f'{{"task_id": "{TASK}"}}', "--json")
    assert (ended.code, ended.json["rule"]) == (3, f"access-rule:{rule}")
    assert ended.json["access_rule"]["subject"] == f"agent key:{key}"
    told = team("why", f"key:{key}", "db.task.get", "--args", f'{{"task_id": "{TASK}"}}').out
    assert "db.task.*" in told
    assert f"toolgate call operator.access_rule.delete rule_id={rule}" in told
    assert ended.json["says"] == DENIED
    alone = team("why", f"key:{key}", "db.task.get")  # the rules of Cedar
    assert alone.code == 0
    assert "has access rules, which look at the arguments, too: ask them with --args" in alone.out


def test_why_says_who_switched_a_tool_off(team: Any) -> None:
    setting = '{"key": "mcp.tools.disabled", "value_type": "array", "value": ["db.task.get"]}'
    assert team("call", "db.system_setting.create", "--json", setting).code == 0
    assert team("switch", "off", "db.job.get").code == 0
    by_setting = team("why", "agent:pm", "db.task.get").out
    assert (
        "It is switched off by the system setting mcp.tools.disabled (to change that: "
        "`toolgate call db.system_setting.delete key=mcp.tools.disabled`)."
    ) in by_setting
    assert "policy.disabled" not in by_setting
    assert "It is switched off by toolgate switch." in team("why", "agent:pm", "db.job.get").out


def test_a_switch_of_a_setting_is_named_with_the_command_that_changes_it(team: Any) -> None:
    setting = {"key": "mcp.tools.disabled", "value_type": "array"}
    listed = json.dumps({**setting, "value": ["db.task.get", "db.job.get"]})
    assert team("call", "db.system_setting.create", "--json", listed).code == 0
    command = (
        "toolgate call db.system_setting.update key=mcp.tools.disabled value_type=array "
        """value='["db.job.get"]'"""
    )
    idle = team("switch", "on", "db.task.get")
    assert idle.code == 2
    told = f"off by the system setting mcp.tools.disabled (to change that: `{command}`)."
    assert told in idle.err
    assert f"To switch db.task.get on:\n  {command}\n" in team("switch", "list").out
    first = team("switch", "list", "--json").json[1]
    by = "the system setting mcp.tools.disabled"
    assert first == {"name": "db.task.get", "by": by, "commands": [command]}
    assert team(*shlex.split(command)[1:]).code == 0
    assert team("why", "admin", "db.task.get").code == 0
    assert team("why", "admin", "db.job.get").code == 3


def test_why_names_the_setting_of_the_file(team: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLGATE_POLICY__DISABLED", "db.task.get")
    told = team("why", "admin", "db.task.get").out
    assert "It is switched off by the setting policy.disabled." in told


def test_why_says_that_the_tool_itself_may_still_refuse(team: Any, key: str) -> None:
    told = team("why", f"key:{key}", "db.task.get", "--args", f'{{"task_id": "{TASK}"}}')
    first, *_, last = told.out.splitlines()
    assert first == (
        f"Allowed by the rules: key:{key} may call db.task.get with these arguments, unless the "
        "tool itself refuses."
    )
    assert last == (
        "The tool itself may still refuse: it looks up whether what the arguments name exists for "
        "this caller, and whether the caller's role there lets it do this."
    )


def test_why_shows_a_tool_that_is_switched_off_as_its_caller_is_answered(team: Any) -> None:
    assert team("switch", "off", "db.task.get").code == 0
    caller = ("db.task.get", "--as", "agent:pm", f"task_id={TASK}")
    answer = team("call", *caller).json["error"]
    for words in ([], ["--args", f'{{"task_id": "{TASK}"}}']):
        ended = team("why", "agent:pm", "db.task.get", *words, "--json")
        assert (ended.code, ended.json["verdict"]) == (3, "disabled")
        assert (ended.json["says"], answer["type"]) == (answer["message"], "tool_disabled")
        assert ended.json["visible"] is False
        told = team("why", "agent:pm", "db.task.get", *words).out
        assert told.startswith("Disabled: db.task.get is switched off, and agent:pm is told so.")
    hidden = team("why", "agent:worker", "db.task.get", "--json").json
    assert hidden["verdict"] == "hidden", "a switch tells nobody of a tool"


@pytest.mark.parametrize(
    "words",
    [
        ["call", "db.task.get", "task_id=x"],
        ["why", "admin", "db.task.get"],
        ["tools", "show", "db.task.get"],
        ["switch", "off", "db.task.get"],
    ],
    ids=lambda words: words[0],
)
def test_a_tool_of_a_pack_that_is_not_enabled_is_named_as_such(cli: Any, words: list[str]) -> None:
    assert cli("db", "upgrade").code == 0
    ended = cli(*words)
    assert ended.code == 2
    assert "It is in pack orchestrator, which is not enabled (setting packs.enabled)." in ended.err


def test_a_pack_that_is_not_enabled_by_default_has_no_commands(cli: Any) -> None:
    refused = cli("orchestrator", "import")
    assert (refused.code, refused.out) == (2, "")
    told = "Name it in the setting packs.enabled, beside the packs that you have."
    assert told in " ".join(refused.err.split())


@pytest.mark.parametrize("words", [["tools", "--pack"], ["switch", "off"]], ids=["tools", "switch"])
def test_a_pack_that_is_not_enabled_is_named_as_such(cli: Any, words: list[str]) -> None:
    assert cli("db", "upgrade").code == 0
    ended = cli(*words, "orchestrator")
    assert ended.code == 2
    assert "Pack orchestrator is not enabled (setting packs.enabled)" in ended.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--args", "{x"], "--args is not JSON"),
        (["--args", "[1]"], "--args must be a JSON object"),
    ],
)
def test_arguments_that_are_no_object_are_refused(
    team: Any, words: list[str], message: str
) -> None:
    ended = team("why", "agent:pm", "db.task.get", *words)
    assert ended.code == 2
    assert message in ended.err


def test_a_key_of_another_type_is_not_taken_for_an_agent(team: Any, key: str) -> None:
    ended = team("why", f"agent:worker:{key}", "db.task.get")
    assert ended.code == 2
    assert f"Key {key} is for an agent of type pm." in ended.err
    admin = team("keys", "create", "--role", "admin", "--json").json["id"]
    assert f"Key {admin} is for no agent." in team("why", f"agent:pm:{admin}", "db.task.get").err


TESTS = f"""
[[test]]
principal = "agent:worker"
tool = "db.task.get"
expect = "hidden"

[[test]]
principal = "agent:pm"
task = "{TASK}"
tool = "db.task.get"
arguments = {{ task_id = "{TASK}" }}
expect = "allowed"
rule = "pm-runs-the-project"

[[test]]
principal = "agent:pm"
task = "{TASK}"
tool = "db.task.get"
arguments = {{ task_id = "{OTHER}" }}
expect = "not found"
rule = "out-of-scope"

[[test]]
principal = "agent:pm"
user = "alice"
tool = "db.task.update_status"
arguments = {{ task_id = "{TASK}", status = "done" }}
expect = "invalid"
"""


def test_a_table_of_expectations_is_checked(team: Any, tmp_path: Path) -> None:
    (tmp_path / "team.test.toml").write_text(TESTS)
    ended = team("policy", "test", "team.test.toml")
    assert (ended.code, ended.out) == (0, "4 passed.\n")
    wrong = TESTS.replace('"hidden"', '"allowed"', 1).replace('"out-of-scope"', '"other"')
    (tmp_path / "team.test.toml").write_text(wrong)
    ended = team("policy", "test", "team.test.toml")
    assert ended.code == 1
    assert "team.test.toml, test 1 (agent:worker, db.task.get): expected allowed" in ended.out
    assert "test 3 (agent:pm, db.task.get): expected rule other, but out-of-scope" in ended.out
    assert ended.out.endswith("2 passed, 2 failed.\n")
    problems = [one["problem"] for one in team("policy", "test", "team.test.toml", "--json").json]
    assert [problem is None for problem in problems] == [False, True, False, True]


def test_the_folder_of_the_rules_is_where_tests_are_looked_for(
    team: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Name a file of tests" in team("policy", "test").err
    monkeypatch.setenv("TOOLGATE_POLICY__FOLDER", "rules")
    folder = tmp_path / "rules"
    folder.mkdir()
    assert "has no file *.test.toml" in team("policy", "test").err
    (folder / "team.test.toml").write_text(TESTS)
    assert team("policy", "test").out == "4 passed.\n"
    assert team("policy", "test", "rules").out == "4 passed.\n"


def test_rules_are_tested_where_there_is_no_data_and_none_is_made(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLGATE_PACKS__ENABLED", "orchestrator")
    (tmp_path / "team.test.toml").write_text(TESTS)
    before = sorted(tmp_path.iterdir())
    assert cli("policy", "test", "team.test.toml").out == "4 passed.\n"
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x =", "cannot be read"),
        ("[other]", "must be a list of tests, each under [[test]]"),
        ("[test]", "must be a list of tests"),
        ('[[test]]\nprincipal = "admin"\ntool = "x"', "test 1: expect is missing"),
        ('[[test]]\nprincipal = "admin"\ntool = "x"\nexpect = "yes"', "expect must be one of"),
        ('[[test]]\nprincipal = "admin"\ntool = "x"\nexpct = "yes"', "there is no 'expct'"),
        ('[[test]]\nprincipal = 1\ntool = "x"\nexpect = "allowed"', "principal must be a text"),
        (
            '[[test]]\nprincipal = "admin"\ntool = "x"\nexpect = "allowed"\narguments = 1',
            "arguments must be a table",
        ),
        (
            '[[test]]\nprincipal = "boss"\ntool = "x"\nexpect = "allowed"',
            "team.test.toml, test 1: There is no principal 'boss'",
        ),
        (
            '[[test]]\nprincipal = "agent:pa"\ntool = "db.task.gte"\nexpect = "hidden"',
            "test 1: There is no tool 'db.task.gte'. Did you mean db.task.get",
        ),
        (
            '[[test]]\nprincipal = "admin"\ntool = "get_document"\nexpect = "hidden"',
            "It is in pack appdata, which is not enabled (setting packs.enabled).",
        ),
        (
            '[[test]]\nprincipal = "admin"\ntask = "x"\ntool = "db.task.get"\nexpect = "allowed"',
            "test 1: task binds an agent, and admin is none.",
        ),
        (
            '[[test]]\nprincipal = "public"\nuser = "x"\ntool = "db.task.get"\nexpect = "hidden"',
            "test 1: user is whom an agent or a key is for, and public is none.",
        ),
    ],
    ids=[
        "toml",
        "other",
        "table",
        "missing",
        "verdict",
        "key",
        "text",
        "arguments",
        "principal",
        "misspelt-tool",
        "disabled-pack",
        "bound-admin",
        "public-user",
    ],
)
def test_a_file_that_is_no_table_of_tests_is_refused(
    team: Any, tmp_path: Path, content: str, message: str
) -> None:
    (tmp_path / "team.test.toml").write_text(content)
    ended = team("policy", "test", "team.test.toml")
    assert ended.code == 2
    assert message in ended.err

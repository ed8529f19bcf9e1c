"""Keys that are bound to a project, a task or a job, on the command line."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from tests.gate.tools import Said, a_tool, offer
from tests.needed_packs import needs_pack

from toolgate import packs
from toolgate.gate.scope import Scoped
from toolgate.gate.tool import Input

pytestmark = pytest.mark.usefixtures("data")


class OfTask(Input):
    task_id: Annotated[str, Scoped("task")]


async def finds(ctx: Any, args: OfTask) -> Said:
    return Said.model_validate({"found": args.task_id})


@pytest.fixture
def scoped_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool for workers, as a pack would bring it."""
    tool = a_tool("artifact.list", finds, takes=OfTask, not_found="Task not found")
    shipped, brought = packs.offers, offer(tool)
    monkeypatch.setattr(packs, "offers", lambda *given: (*shipped(*given), *brought))


@dataclass
class Made:
    id: str
    shown: dict[str, Any]


@pytest.fixture
def key(cli: Any) -> Made:
    bound = ("--user", "alice", "--project", "p1", "--task", "t1", "--job", "j1")
    made = cli("keys", "create", "--agent", "worker", *bound, "--name", "Night shift", "--json")
    return Made(made.json["id"], made.json)


def test_a_key_is_made_and_listed_with_what_it_is_bound_to(cli: Any, key: Made) -> None:
    ids = {"project_id": "p1", "task_id": "t1", "job_id": "j1"}
    assert {name: key.shown[name] for name in ids} == ids
    (row,) = cli("keys", "list", "--json").json
    assert {name: row[name] for name in ids} == ids
    assert (row["user_id"], row["name"], row["agent_type"]) == ("alice", "Night shift", "worker")
    head, line = cli("keys", "list").out.splitlines()
    assert "BOUND TO" in head
    assert "project p1, task t1, job j1" in line
    told = cli("keys", "create", "--agent", "pa", "--task", "t2").out
    assert "Bound to  task t2" in told


def test_a_key_shows_its_user_in_json(cli: Any, key: Made) -> None:
    assert key.shown["user_id"] == "alice"
    plain = cli("keys", "create", "--role", "user", "--user", "u1", "--json")
    assert (plain.json["user_id"], plain.err) == ("u1", "")


@pytest.mark.parametrize("option", ["--user", "--expires"])
@pytest.mark.parametrize("value", ["", "  "], ids=["empty", "blank"])
def test_an_option_without_a_value_makes_no_key(cli: Any, option: str, value: str) -> None:
    refused = cli("keys", "create", "--agent", "pm", option, value)
    assert refused.code == 2
    assert option in refused.err
    assert cli("keys", "list", "--json").json == []


def test_a_worker_without_a_task_is_warned_of(cli: Any) -> None:
    for bound in ([], ["--project", "p1"]):
        made = cli("keys", "create", "--agent", "worker", *bound, "--json")
        assert made.code == 0
        told = "Warning: a worker's key without --task or --job reaches no task.\n"
        assert made.err.startswith(told)
    for bound in (["--task", "t1"], ["--job", "j1"]):
        assert "reaches no task" not in cli("keys", "create", "--agent", "worker", *bound).err


@needs_pack("orchestrator")
def test_ids_that_a_pack_does_not_know_yet_are_warned_of(
    cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLGATE_PACKS__ENABLED", "orchestrator")
    assert cli("db", "upgrade").code == 0
    user = "--json", '{"user_id": "alice", "display_name": "Alice"}'
    assert cli("call", "operator.user.create", *user).code == 0
    bound = ("--user", "alice", "--task", "null")
    made = cli("keys", "create", "--agent", "pm", *bound, "--json")
    assert made.json["task_id"] == "null"
    assert made.err == "Warning: there is no task null in pack orchestrator yet.\n"
    carol = cli("keys", "create", "--agent", "pm", "--user", "carol")
    assert carol.err == "Warning: there is no user carol in pack orchestrator yet.\n"
    assert cli("keys", "create", "--role", "user", "--user", "carol").err == ""


@needs_pack("orchestrator")
def test_an_id_in_capitals_binds_the_key_to_the_same_task(
    cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLGATE_PACKS__ENABLED", "orchestrator")
    assert cli("db", "upgrade").code == 0
    task = cli("call", "operator.task.create", "prompt=Build").json["result"]["id"]
    made = cli("keys", "create", "--agent", "worker", "--task", task.upper(), "--json")
    assert (made.err, made.json["task_id"]) == ("", task)
    for given in (task, task.upper()):
        arguments = "--json", f'{{"task_id": "{given}"}}'
        found = cli("call", "artifact.list", *arguments, "--as", f"key:{made.json['id']}")
        assert (found.code, found.json["result"]) == (0, {"items": []})


@pytest.mark.parametrize("option", ["--project", "--task", "--job"])
def test_only_the_key_of_an_agent_can_be_bound(cli: Any, option: str) -> None:
    refused = cli("keys", "create", "--role", "admin", option, "x")
    assert refused.code == 2
    assert f"{option} is for the key of an agent" in refused.err
    for odd in ("", " ", "a\nb", "x" * 129):
        refused = cli("keys", "create", "--agent", "pm", option, odd)
        assert refused.code == 2
        assert f"{option} takes an id of 1 to 128 printable characters" in refused.err
    assert cli("keys", "list", "--json").json == []


@needs_pack("orchestrator")
@pytest.mark.usefixtures("scoped_tool")
def test_a_call_as_a_bound_key_finds_only_what_it_is_bound_to(cli: Any, key: Made) -> None:
    found = cli("call", "artifact.list", "task_id=t1", "--as", f"key:{key.id}")
    assert (found.code, found.json["result"]) == (0, {"found": "t1"})
    other = cli("call", "artifact.list", "task_id=t2", "--as", f"key:{key.id}")
    assert other.code == 1
    assert other.json["error"]["message"] == "Task not found"
    assert cli("call", "artifact.list", "task_id=t2", "--as", "agent:worker").code == 0


@needs_pack("orchestrator")
@pytest.mark.usefixtures("scoped_tool")
def test_why_says_what_a_key_is_bound_to(cli: Any, key: Made) -> None:
    bound = cli("why", f"key:{key.id}", "artifact.list", "--json")
    assert (bound.code, bound.json["only"]) == (0, {"task_id": "t1"})
    told = cli("why", f"key:{key.id}", "artifact.list").out
    assert f"key:{key.id} is bound: with another task_id than t1 nothing is found." in told
    free = cli("why", "agent:worker", "artifact.list", "--json")
    assert (free.code, free.json["bound"], free.json["only"]) == (0, {}, {})
    assert "bound" not in cli("why", "agent:worker", "artifact.list").out


def test_why_says_that_no_argument_of_a_tool_is_bound(cli: Any, key: Made) -> None:
    told = cli("why", f"key:{key.id}", "health_check")
    assert told.code == 0
    assert (
        f"key:{key.id} is bound to project p1, task t1, job j1, user alice, but no argument of "
        "health_check is bound to a project, task, job or user."
    ) in " ".join(told.out.split())
    as_json = cli("why", f"key:{key.id}", "health_check", "--json").json
    bound = {"project": "p1", "task": "t1", "job": "j1", "user": "alice"}
    assert (as_json["bound"], as_json["only"]) == (bound, {})
    refused = cli("why", f"key:{key.id}", "get_document")
    assert (refused.code, "is bound to" in refused.out) == (3, False)

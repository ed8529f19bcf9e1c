"""A caller that is bound to an id finds no other, in the tool's own words."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest
from pydantic import BaseModel, Field
from tests.gate.tools import (
    ADMIN,
    AGENTS,
    PACKS,
    USER,
    Said,
    a_tool,
    answering,
    is_stored,
    offer,
    only_row,
    storing,
)
from typing_extensions import TypedDict

from toolgate.gate.context import Context
from toolgate.gate.errors import Gone, NotFound
from toolgate.gate.principal import AgentType, Principal, Role, of_agent
from toolgate.gate.scope import OUT_OF_SCOPE, BadScope, Scoped
from toolgate.gate.tool import Effect, Family, Input
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

TaskId = Annotated[str, Field(min_length=1), Scoped("task")]
THERE = {"mine", "theirs"}
"""The tasks that there are."""
BOUND = replace(
    AGENTS[AgentType.WORKER], bound={"task_id": "mine", "project_id": "p", "job_id": "j"}
)
FREE = AGENTS[AgentType.PM]


class OfTask(Input):
    task_id: TaskId


class OfRun(Input):
    task_id: TaskId | None = None
    job_id: Annotated[str | None, Scoped("job")] = None
    run_id: Annotated[str | None, Scoped("run")] = None


class OfUser(Input):
    user: Annotated[str, Scoped("user")]


def missing(args: OfTask) -> NotFound:
    return Gone(f"Task {args.task_id} is gone", hint="db.task.list")


async def looks(ctx: Context[Any], args: OfTask) -> Said:
    if args.task_id not in THERE:
        raise NotFound("Task not found")
    return Said.model_validate({"task": args.task_id})


async def looks_in_its_own_words(ctx: Context[Any], args: OfTask) -> Said:
    if args.task_id not in THERE:
        raise missing(args)
    return Said.model_validate({"task": args.task_id})


async def shows(ctx: Context[Any], args: Any) -> Said:
    return Said(**args.model_dump())


PLUGINS = offer(
    a_tool("db.look", looks, takes=OfTask, not_found="Task not found", role=Role.PUBLIC),
    *(
        a_tool(
            f"{pack}.look",
            looks_in_its_own_words,
            pack=pack,
            takes=OfTask,
            not_found=missing,
            role=Role.PUBLIC,
        )
        for pack in PACKS
        if pack != "orchestrator"
    ),
    a_tool("db.show", shows, takes=OfRun, not_found="Task not found", role=Role.PUBLIC),
    a_tool("db.user", shows, takes=OfUser, not_found="User not found", role=Role.PUBLIC),
    a_tool("db.plain", answering(), role=Role.PUBLIC),
    a_tool(
        "db.write",
        storing(),
        takes=OfTask,
        not_found="Task not found",
        effect=Effect.WRITE,
        role=Role.PUBLIC,
    ),
)
LOOKING = ["db.look", *(f"{pack}.look" for pack in PACKS if pack != "orchestrator")]


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[Kit]:
    async with opened_kit(tmp_path, plugins=PLUGINS) as opened:
        yield opened


# What a caller is answered -------------------------------------------------------------------


async def test_the_own_id_is_found(kit: Kit) -> None:
    outcome = await kit.call("db.look", BOUND, task_id="mine")
    assert outcome.error_type is None
    row = await only_row(kit)
    assert (row["decision"], row["rule"]) == ("allow", "public-tools")


@pytest.mark.parametrize("tool", LOOKING)
async def test_another_id_is_not_found_as_one_that_does_not_exist(kit: Kit, tool: str) -> None:
    """The same bytes for what is somebody else's, and for what nobody has."""
    for name in ("theirs", "nobody's"):
        refused = await kit.call(tool, BOUND, task_id=name)
        known = await kit.call(tool, FREE, task_id="missing")
        assert refused.raw.replace(name.encode(), b"missing") == known.raw
        assert (refused.error_type, refused.status) == (known.error_type, known.status)


async def test_the_handler_is_not_asked_for_another_id(kit: Kit) -> None:
    outcome = await kit.call("db.write", BOUND, task_id="theirs")
    assert outcome.error_type == "not_found"
    assert not await is_stored(kit)
    assert (await kit.call("db.write", BOUND, task_id="mine")).error_type is None
    assert await is_stored(kit)


async def test_wrong_arguments_come_first(kit: Kit) -> None:
    outcome = await kit.call("db.look", BOUND, task_id="")
    assert outcome.error_type == "invalid_arguments"


@pytest.mark.parametrize("who", [FREE, ADMIN, USER])
async def test_who_is_bound_to_nothing_may_name_any(kit: Kit, who: Principal) -> None:
    assert (await kit.call("db.look", who, task_id="theirs")).error_type is None


async def test_an_id_that_is_left_out_is_the_callers_own(kit: Kit) -> None:
    outcome = await kit.call("db.show", BOUND)
    assert outcome.body["result"] == {"task_id": "mine", "job_id": "j", "run_id": None}
    outcome = await kit.call("db.show", BOUND, task_id="mine", job_id="k")
    assert outcome.error_type == "not_found"
    outcome = await kit.call("db.show", FREE, job_id="k")
    assert outcome.body["result"] == {"task_id": None, "job_id": "k", "run_id": None}


async def test_a_user_and_the_agent_of_one_are_bound_to_that_user_and_an_admin_is_not(
    kit: Kit,
) -> None:
    for who in (USER, of_agent(AgentType.PM, "a", "u1")):
        assert (await kit.call("db.user", who, user="u1")).error_type is None
        assert (await kit.call("db.user", who, user="u2")).error_type == "not_found"
    admin = replace(USER, roles=frozenset({Role.USER, Role.ADMIN}))
    assert (await kit.call("db.user", admin, user="u2")).error_type is None


# What the audit says -------------------------------------------------------------------------


async def test_a_refusal_has_a_rule_of_its_own_and_names_the_id_that_was_tried(kit: Kit) -> None:
    await kit.call("db.look", BOUND, task_id="theirs")
    row = await only_row(kit)
    assert (row["decision"], row["rule"]) == ("deny", OUT_OF_SCOPE)
    assert (row["status"], row["error_type"]) == ("error", "not_found")
    assert (row["task_id"], row["project_id"], row["job_id"]) == ("theirs", "p", "j")


async def test_ids_come_from_the_arguments_and_else_from_the_key(kit: Kit) -> None:
    await kit.call("db.show", BOUND, run_id="r")
    await kit.call("db.show", FREE, task_id="t", job_id="k", run_id="r")
    await kit.call("db.write", FREE, task_id="t")
    await kit.call("db.plain", BOUND)
    await kit.call("db.user", ADMIN, user="u2")
    ids = ("project_id", "task_id", "run_id", "job_id", "user_id")
    found = [tuple(row[name] for name in ids) for row in await kit.audit_rows()]
    assert sorted(found, key=str) == sorted(
        [
            ("p", "mine", "r", "j", None),
            (None, "t", "r", "k", None),
            (None, "t", None, None, None),
            ("p", "mine", None, "j", None),
            (None, None, None, None, None),
        ],
        key=str,
    )


async def test_an_id_is_kept_short_and_printable(kit: Kit) -> None:
    await kit.call("db.look", FREE, task_id="a\0b\x07" + "x" * 10_000)
    row = await only_row(kit)
    assert row["task_id"] == "a?b?" + "x" * 124


# What may be declared ------------------------------------------------------------------------


class Inner(BaseModel):
    task_id: TaskId


class Listed(Input):
    tasks: list[TaskId]


class Nested(Input):
    inner: Inner | None = None


class Numbered(Input):
    task_id: Annotated[int, Scoped("task")]


class Twice(Input):
    id: Annotated[str, Scoped("task"), Scoped("job")]


class Typed(TypedDict):
    task_id: TaskId


class InDict(Input):
    inner: Typed


class Pair(NamedTuple):
    task_id: TaskId


class InTuple(Input):
    inner: dict[str, Pair]


@dataclass
class Plain:
    task_id: TaskId


class InDataclass(Input):
    inner: list[Plain]


class Tree(Input):
    children: "tuple[Tree, ...]" = ()


@pytest.mark.parametrize(
    "takes",
    [Listed, Nested, Numbered, Twice, InDict, InTuple, InDataclass],
    ids=lambda one: one.__name__,
)
def test_what_could_not_be_checked_is_refused(takes: type[Input]) -> None:
    with pytest.raises(
        BadScope, match=r"db\.bad: .* cannot be checked as a scope id.*`str \| None`"
    ):
        a_tool("db.bad", takes=takes, not_found="Task not found")


def test_a_tool_with_scope_ids_says_what_it_raises() -> None:
    with pytest.raises(BadScope, match=r"db\.bad has scope ids \(task_id\).*not_found="):
        a_tool("db.bad", takes=OfTask)
    with pytest.raises(BadScope, match="no field of Tree is Scoped"):
        a_tool("db.bad", takes=Tree, not_found="Task not found")
    with pytest.raises(BadScope, match=r"no scope 'taks'\. Scopes: project, task, run, job, user"):
        Scoped("taks")
    assert a_tool("db.good", takes=Tree).scope is None


def test_a_family_declares_it() -> None:
    family = Family("tests", PACKS["orchestrator"])

    @family.tool(
        "db.task.get",
        role=Role.ADMIN,
        effect=Effect.READ,
        title="Get",
        not_found=missing,
    )
    async def get(ctx: Context[Any], args: OfTask) -> Said:
        """Get a task."""
        return Said()

    assert get.scope is not None
    assert get.scope.fields == {"task_id": "task"}
    assert get.input_schema["properties"]["task_id"] == {"minLength": 1, "type": "string"}

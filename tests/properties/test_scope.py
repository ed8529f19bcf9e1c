"""Whatever a key is bound to and whatever is asked: the gate decides as a plain model does."""

from collections.abc import AsyncIterator
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gate.tools import Said, a_tool, offer

from toolgate.gate.principal import BOUND, AgentType, Kind, Principal, Role
from toolgate.gate.scope import Scoped
from toolgate.gate.tool import Input
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio


class Ids(Input):
    project: Annotated[str | None, Scoped("project")] = None
    task: Annotated[str, Scoped("task")]
    other_task: Annotated[str, Scoped("task")] | None = None
    job: Annotated[str, Scoped("job")] = "j0"
    run: Annotated[str | None, Scoped("run")] = None
    user: Annotated[str | None, Scoped("user")] = None
    free: str | None = None


KIND = {"other_task": "task"}
"""Of fields that are not named after it."""


async def shows(ctx: Any, args: Ids) -> Said:
    return Said(**args.model_dump())


@pytest.fixture(scope="module")
async def kit(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Kit]:
    tool = a_tool("db.show", shows, takes=Ids, not_found="Not found", role=Role.PUBLIC)
    async with opened_kit(tmp_path_factory.mktemp("scope"), plugins=offer(tool)) as opened:
        yield opened


ids = st.sampled_from(["a", "b", "A", "a ", "j0", "é"])
callers = st.builds(
    Principal,
    kind=st.sampled_from(Kind),
    id=st.just("somebody"),
    roles=st.sets(st.sampled_from(Role)).map(frozenset),
    agent_type=st.none() | st.sampled_from(AgentType),
    user_id=st.none() | ids,
    bound=st.dictionaries(st.sampled_from(BOUND), ids),
)
arguments = st.fixed_dictionaries(
    {"task": ids},
    optional={name: ids for name in ("project", "other_task", "job", "run", "user", "free")},
)


def expected(who: Principal, given: dict[str, str]) -> dict[str, str | None] | None:
    """What the handler gets; None for not found."""
    seen: dict[str, str | None] = {**dict.fromkeys(Ids.model_fields), "job": "j0", **given}
    for name in seen:
        kind = KIND.get(name, name)
        own = who.user_id if kind == "user" else who.bound.get(f"{kind}_id")
        if kind == "user" and Role.ADMIN in who.roles:
            own = None
        if own is not None:
            if seen[name] not in (None, own):
                return None
            seen[name] = own
    return seen


@given(who=callers, asked=arguments)
@settings(max_examples=300)
async def test_a_call_is_decided_as_by_a_plain_model(
    kit: Kit, who: Principal, asked: dict[str, str]
) -> None:
    outcome = await kit.send("db.show", asked, who)
    wanted = expected(who, asked)
    if wanted is None:
        assert outcome.error_type == "not_found"
    else:
        assert (outcome.error_type, outcome.body["result"]) == (None, wanted)

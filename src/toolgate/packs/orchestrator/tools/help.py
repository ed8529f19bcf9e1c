"""Help: what the caller can do here, and how."""

from typing import Annotated

from pydantic import Field

from toolgate.gate.arguments import nearest, shorten
from toolgate.gate.context import Context
from toolgate.gate.errors import InvalidArguments, NotFound, Problem
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output
from toolgate.packs.orchestrator.access import viewer_of
from toolgate.packs.orchestrator.help.pages import OVERVIEW, page_at, page_of, topics
from toolgate.packs.orchestrator.pack import MAX_ID, ORCHESTRATOR, TaskId
from toolgate.packs.orchestrator.world import OrchestratorWorld

family = Family("help", ORCHESTRATOR)

NO_TASK = "Task not found"
Text = Annotated[str, Field(min_length=1, max_length=MAX_ID)]


class Question(Input):
    """What help is wanted with."""

    task_id: TaskId = Field(description="The task that this is for.")
    topic: Text | None = Field(
        default=None,
        description="A tool's name, a group of tools, or a guide, or the path of its page.",
    )
    path: Text | None = Field(
        default=None,
        description="The path of a page, such as guides/tasks, or its topic; not with topic.",
    )


class HelpPage(Output):
    """A page of help."""

    path: str = Field(description="Where the page is.")
    content: str = Field(description="The text, Markdown, at most 64 KiB.")


@family.tool(
    "help.get",
    role=Role.ADMIN,
    effect=Effect.READ,
    title="Get help",
    not_found=NO_TASK,
    example={"task_id": "00000000-0000-4000-8000-0000000000b1", "topic": "tasks"},
)
async def get(ctx: Context[OrchestratorWorld], args: Question) -> HelpPage:
    """Read how to work here: an overview, a guide, or the page of a tool.

    It shows only tools that the caller sees.
    """
    if args.topic is not None and args.path is not None:
        raise InvalidArguments(
            [Problem("arguments", "value", "only one of topic and path may be given")]
        )
    if await ctx.world.work.task(viewer_of(ctx.principal), args.task_id) is None:
        raise NotFound(NO_TASK)
    tools = ctx.world.tools.visible(ctx.principal)
    what = (args.topic or args.path or OVERVIEW).strip().lower()
    found = page_at(what, tools) if "/" in what else page_of(what, tools)
    if found is None:
        name = what.removeprefix("tools/")
        if ctx.world.tools.is_off(ctx.principal, name):
            raise NotFound(f"{name} is switched off by an operator.")
        near = nearest(what.rpartition("/")[2], topics(tools))
        hint = f"Did you mean {near}?" if near else "Leave it out to see what there is."
        raise NotFound(f"There is no help on {shorten(what)!r}. {hint}")
    return HelpPage(path=found[0], content=found[1])

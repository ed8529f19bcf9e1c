"""Tools made up for tests: each passes the whole gate, as a plug-in's would."""

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import anyio
from pydantic import ConfigDict
from sqlalchemy import text

from toolgate import packs
from toolgate.db.engine import Database
from toolgate.gate.catalogue import AnyTool, Catalogue, OpenPack
from toolgate.gate.context import Context
from toolgate.gate.dialects import ENVELOPE, FLAGGED, JSON_RPC, SENTENCE, STATUS
from toolgate.gate.offer import AnyOffer, Offer, Site
from toolgate.gate.outcomes import Outcome
from toolgate.gate.policy import Policy
from toolgate.gate.principal import AgentType, Principal, Role, of_agent, of_role
from toolgate.gate.rule_schema import Switches, Vocabulary, switches_of, vocabulary
from toolgate.gate.rules import Rule, built_in_rules, pack_rules, rules_of, shipped_rules
from toolgate.gate.tool import (
    USUAL,
    Effect,
    Input,
    NoArguments,
    Output,
    Pack,
    Target,
    Tool,
    ToolLimits,
)
from toolgate.packs import DEFAULT
from toolgate.ports.documents import Create, DocumentStore
from toolgate.setting_types import Section
from toolgate.settings import every_setting
from toolgate.testing import Kit
from toolgate.testing.kit import ADMIN

DIALECTS = {
    "appdata": FLAGGED,
    "backend": SENTENCE,
    "orchestrator": STATUS,
    "content": ENVELOPE,
    "network": JSON_RPC,
}
PACKS = {name: Pack(name, dialect, "For tests.") for name, dialect in DIALECTS.items()}
Run = Callable[[Context[Any], Any], Coroutine[Any, Any, Output]]

USER = of_role(Role.USER, "a-user", "u1")
PUBLIC = of_role(Role.PUBLIC, "somebody")
AGENTS = {one: of_agent(one, f"agent-{one}") for one in AgentType}


class Said(Output):
    """An answer with any fields."""

    model_config = ConfigDict(extra="allow")


async def says_nothing(ctx: Context[Any], args: Any) -> Said:
    return Said()


def answering(**fields: Any) -> Run:
    """A handler that always gives this answer."""

    async def run(ctx: Context[Any], args: Any) -> Said:
        return Said(**fields)

    return run


def raising(error: Exception, cause: Exception | None = None) -> Run:
    """A handler that always fails."""

    async def run(ctx: Context[Any], args: Any) -> Said:
        raise error from cause

    return run


def give_time(kit: Kit, seconds: float) -> None:
    """How long each call may take that comes from now on, while none runs."""
    deadlines = kit.app.gate.limits.deadlines
    deadlines.seconds = seconds
    if deadlines.timer is not None:
        deadlines.timer.cancel()
        deadlines.timer = None


def end_the_time(kit: Kit) -> None:
    """Let every call that runs be over its time, now."""
    deadlines = kit.app.gate.limits.deadlines
    for one in deadlines.running:
        one.ends = time.monotonic()
    if deadlines.timer is not None:
        deadlines.timer.cancel()
    deadlines.wake_in(0)


STORED = Create("apps", "stored", {"name": "stored"})


def storing(then: Callable[[], Awaitable[None]] | None = None) -> Run:
    """A handler that creates the document `stored`, and then does something else."""

    async def run(ctx: Context[Any], args: Any) -> Said:
        await ctx.world.documents.write(ctx.tx, STORED)
        if then:
            await then()
        return Said()

    return run


def a_tool(
    name: str,
    run: Run = says_nothing,
    *,
    pack: str = "orchestrator",
    effect: Effect = Effect.READ,
    role: Role = Role.ADMIN,
    takes: type[Input] = NoArguments,
    gives: type[Output] = Said,
    family: str = "tests",
    open_world: bool = False,
    limits: ToolLimits = USUAL,
    not_found: Any = None,
) -> AnyTool:
    """A tool that differs from the plainest one only where a test says so."""
    return Tool(
        name=name,
        pack=PACKS[pack],
        family=family,
        title=name,
        description=f"{name}, for tests.",
        input=takes,
        output=gives,
        role=role,
        effect=effect,
        idempotent=False,
        open_world=open_world,
        limits=limits,
        example={},
        writes=frozenset() if effect is Effect.READ else frozenset({Target.DOCUMENTS}),
        handler=run,
        not_found=not_found,
    )


def switches(**changed: Any) -> Switches:
    """What rules find in `context` unless something was set."""
    usual = switches_of(every_setting()())
    return {name: replace(one, value=changed.get(name, one.value)) for name, one in usual.items()}


def every_offer() -> tuple[AnyOffer, ...]:
    """Of all packs that ship."""
    return packs.offers(packs.SHIPPED)


def shipped() -> dict[str, str]:
    """Every rule that ships."""
    return shipped_rules(every_offer())


def shipped_policy(**changed: Any) -> Policy:
    """Every rule that ships, those of packs confined to them."""
    return Policy(_shipped_rules(), switches(**changed))


@cache
def _shipped_rules() -> list[Rule]:
    confined = [rule for one in every_offer() for rule in pack_rules(one)]
    return [*rules_of(built_in_rules()), *confined]


def _rules_of_pack(name: str) -> str | None:
    """The rules of a pack that ships, for tools made up in its name; by default they are there."""
    return next((one.rules for one in every_offer() if one.pack.name == name), None)


def words() -> Vocabulary:
    """What rules may look at."""
    return vocabulary(switches())


@asynccontextmanager
async def on_site(site: Site, settings: Section) -> AsyncGenerator[Site]:
    """Handlers that are given what packs are given."""
    yield site


def offer(*tools: AnyTool) -> list[AnyOffer]:
    """What plug-ins bring, one for each pack of the tools; packs that ship keep their ports."""
    by_pack = {tool.pack.name: tool.pack for tool in tools}
    return [
        Offer(
            pack=pack,
            tools=tuple(tool for tool in tools if tool.pack.name == name),
            open=None if name in DEFAULT else on_site,
            rules=None if name in DEFAULT else _rules_of_pack(name),
            complete=False,
        )
        for name, pack in by_pack.items()
    ]


def over(kit: Kit, store: DocumentStore) -> Kit:
    """The same gate with its documents in another store."""
    app = kit.app
    apart = {Target.OUTSIDE} if store.joins_transaction else {Target.OUTSIDE, Target.DOCUMENTS}
    worlds = {
        name: OpenPack(
            replace(one.world, documents=store) if hasattr(one.world, "documents") else one.world,
            frozenset(apart),
        )
        for name, one in app.worlds.items()
    }
    gate = replace(app.gate, catalogue=Catalogue(app.gate.catalogue.offers, opened=worlds))
    return Kit(replace(app, gate=gate, worlds=worlds))


async def is_stored(kit: Kit, document_id: str = "stored") -> bool:
    """Whether any pack has this document."""
    worlds = [one.world for one in kit.app.worlds.values() if hasattr(one.world, "documents")]
    return any([await one.documents.get("apps", document_id) is not None for one in worlds])


async def only_row(kit: Kit) -> dict[str, Any]:
    (row,) = await kit.audit_rows()
    return row


async def call_at_once(
    kit: Kit, times: int, tool: str, principals: Iterable[Principal] = (ADMIN,)
) -> list[Outcome]:
    """So many calls at the same time, for each principal."""
    outcomes: list[Outcome] = []

    async def one(who: Principal) -> None:
        outcomes.append(await kit.call(tool, who))

    async with anyio.create_task_group() as calls:
        for who in principals:
            for _ in range(times):
                calls.start_soon(one, who)
    return outcomes


async def run_sql(database: Database, *statements: str) -> None:
    await database.write(lambda c: [c.execute(text(one)) for one in statements])


@asynccontextmanager
async def audit_away(kit: Kit) -> AsyncIterator[None]:
    """The audit's table is not there for a while."""
    await run_sql(kit.app.gate.database, "ALTER TABLE audit RENAME TO audit_away")
    try:
        yield
    finally:
        await run_sql(kit.app.gate.database, "ALTER TABLE audit_away RENAME TO audit")

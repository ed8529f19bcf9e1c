"""Access rules: what single agents, users, groups, projects and tasks may do."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, ValidationError

from toolgate.gate.arguments import nearest, options_of
from toolgate.gate.audit_records import timestamp
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.errors import Conflict, InvalidArguments, NotFound, Problem
from toolgate.gate.fields import Between
from toolgate.gate.principal import Role
from toolgate.gate.tool import Effect, Family, Input, Output, Target
from toolgate.packs.orchestrator.access_rules import (
    INVOKE,
    MAX_PATTERN,
    MAX_STARS,
    RESOURCE_TYPES,
    Action,
    Conditions,
    RuleEffect,
    Scalar,
    SubjectType,
    compiled,
)
from toolgate.packs.orchestrator.administration import Kind
from toolgate.packs.orchestrator.pack import ORCHESTRATOR, NextCursor, Paged, SomeId, Uuid
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.tools.kept_values import check_kept
from toolgate.packs.orchestrator.tools.operator.lists import Ctx, Removed, listed, needed, shown

family = Family("operator_access", ORCHESTRATOR)

WHEN = (
    "`agent_types`, a list of pm, pa and worker; `arguments`, for names of arguments the lists of "
    "values that they may have; `not_before` and `not_after`, moments such as "
    "2026-12-31T18:00:00Z. All that are given must hold"
)
RULE = "00000000-0000-4000-8000-0000000000f1"
SUBJECT_KINDS: dict[SubjectType, Kind] = {
    "user": "user",
    "group": "group",
    "project": "project",
    "task": "task",
}
MAX_ALIKE = 100
"""Rules about the same subject and pattern that a new one is compared with."""
Pattern = Annotated[str, Field(min_length=1, max_length=MAX_PATTERN)]
Priority = Annotated[int, Between(-1_000_000, 1_000_000)]


class NewRule(Input):
    """A rule to be created."""

    effect: RuleEffect = Field(description="Whether it allows or denies.")
    subject_type: SubjectType = Field(
        default="system",
        description="Whom it is about: `system` is every agent, `agent` a type (pm, pa, worker) "
        "or one key.",
    )
    subject_id: SomeId = Field(
        default="",
        description="The id of the subject; empty for `system`. For `agent` pm, pa, worker or "
        "key:ID.",
    )
    action: Action = Field(default=INVOKE, description="What is done.")
    resource_pattern: Pattern = Field(
        description="With what: a tool's name, `*` for any characters, such as `artifact.*`."
    )
    priority: Priority = Field(
        default=0, description="Of several rules that apply, the highest is named in the audit."
    )
    conditions: Conditions | None = Field(default=None, description=f"When it applies: {WHEN}.")


class RuleChange(Input):
    """What is changed; what is left out stays."""

    rule_id: Uuid = Field(description="The rule's id.")
    effect: RuleEffect | None = Field(default=None, description="Whether it allows or denies.")
    resource_pattern: Pattern | None = Field(default=None, description="With what.")
    priority: Priority | None = Field(default=None, description="Its priority.")
    conditions: Conditions | None = Field(
        default=None, description=f"When it applies, `{{}}` for always: {WHEN}."
    )


class ByRule(Input):
    """Which rule."""

    rule_id: Uuid = Field(description="The rule's id.")


class Rule(Output):
    """An access rule."""

    id: str = Field(description="Its id; the audit names it as `access-rule:ID`.")
    effect: RuleEffect = Field(description="Whether it allows or denies.")
    subject_type: SubjectType = Field(description="Whom it is about.")
    subject_id: str = Field(description="The id of the subject; empty for `system`.")
    action: str = Field(description="What is done.")
    resource_type: str = Field(description="What the pattern is compared with.")
    resource_pattern: str = Field(description="With what.")
    priority: int = Field(description="Its priority.")
    conditions: dict[str, Any] = Field(description="When it applies; empty for always.")
    created_at: str = Field(description="When it was created, ISO 8601.")
    updated_at: str = Field(description="When it was changed last, ISO 8601.")
    updated_by: str = Field(description="Who changed it last.")


class Rules(Output):
    """A page of access rules."""

    entries: list[Rule] = Field(description="The rules, oldest first.")
    next_cursor: NextCursor = ""


@family.tool(
    "operator.access_rule.create",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    title="Create an access rule",
    example={
        "effect": "deny",
        "subject_type": "agent",
        "subject_id": "pa",
        "resource_pattern": "db.preference.*",
    },
)
async def create(ctx: Ctx, args: NewRule) -> Rule:
    """Create a rule on what agents may do; in force on every server within a second.

    A rule that denies outweighs all that allow. What no rule allows is denied.
    """
    await check_kept(ctx.principal.id, conditions=_stored(args.conditions))
    _check_pattern(ctx, args.resource_pattern, args.conditions)
    await _check_subject(ctx, args.subject_type, args.subject_id)
    conditions = _stored(args.conditions)
    await _check_new(ctx, args, conditions or {})
    row = {
        **args.model_dump(exclude={"conditions"}),
        "id": str(uuid.uuid4()),
        "conditions": conditions,
        "updated_by": ctx.principal.id,
    }
    rule = await ctx.world.administration.create(ctx.tx, "access_rule", row)
    await ctx.world.access_rules.changed(ctx.tx)
    return _rule(rule or row)


@family.tool(
    "operator.access_rule.update",
    role=Role.ADMIN,
    effect=Effect.WRITE,
    writes=[Target.TABLES],
    idempotent=True,
    title="Update an access rule",
    example={"rule_id": RULE, "priority": 10},
)
async def update(ctx: Ctx, args: RuleChange) -> Rule:
    """Change a rule; what is left out stays as it is."""
    values: dict[str, Any] = {
        name: value
        for name in ("effect", "resource_pattern", "priority")
        if (value := getattr(args, name)) is not None
    }
    if args.conditions is not None:
        values["conditions"] = _stored(args.conditions)
        await check_kept(ctx.principal.id, conditions=values["conditions"])
    old = await needed(ctx, "access_rule", id=args.rule_id)
    conditions = _kept(old) if args.conditions is None else args.conditions
    _check_pattern(ctx, args.resource_pattern or old["resource_pattern"], conditions)
    values["updated_by"] = ctx.principal.id
    key = {"id": args.rule_id}
    rule = await ctx.world.administration.update(ctx.tx, "access_rule", key, values)
    await ctx.world.access_rules.changed(ctx.tx)
    return _rule(rule or old)


@family.tool(
    "operator.access_rule.delete",
    role=Role.ADMIN,
    effect=Effect.DESTROY,
    writes=[Target.TABLES],
    title="Delete an access rule",
    example={"rule_id": RULE},
)
async def delete(ctx: Ctx, args: ByRule) -> Removed:
    """Delete a rule. Without any that allows, agents can do nothing."""
    if not await ctx.world.administration.delete(ctx.tx, "access_rule", {"id": args.rule_id}):
        raise NotFound(f"There is no access rule {args.rule_id!r}.")
    await ctx.world.access_rules.changed(ctx.tx)
    return Removed()


@family.tool(
    "operator.access_rule.list", role=Role.ADMIN, effect=Effect.READ, title="List access rules"
)
async def list_(ctx: Ctx, args: Paged) -> Rules:
    """List the access rules, oldest first."""
    rows, more = await listed(ctx, "access_rule", args, {})
    return Rules(entries=[_rule(row) for row in rows], **more)


def _check_pattern(ctx: Ctx, pattern: str, conditions: Conditions | None) -> None:
    """A pattern that no tool fits, or an argument that none of them has, would never apply."""
    if pattern.count("*") > MAX_STARS:
        message = f"resource_pattern may have {MAX_STARS} stars at most"
        raise InvalidArguments([Problem("resource_pattern", "format", message)])
    tools = ctx.world.tools.visible(ctx.principal)
    names = [tool.name for tool in tools]
    fits = compiled(pattern)
    fitting = [tool for tool in tools if fits.fullmatch(tool.name)]
    known = {name for tool in fitting for name in tool.input.model_fields}
    if conditions and (unknown := [one for one in conditions.arguments or () if one not in known]):
        near = nearest(unknown[0], sorted(known))
        hint = f". Did you mean {near}?" if near else ""
        message = f"no tool of this pattern takes an argument {unknown[0]}{hint}"
        raise InvalidArguments([Problem("conditions", "value", message)])
    if conditions:
        _check_values(fitting, conditions.arguments or {})
    if not fitting:
        groups = dict.fromkeys(name.rpartition(".")[0] for name in names if "." in name)
        near = nearest(pattern, [*names, *(f"{group}.*" for group in groups)])
        hint = f". Did you mean {near}?" if near else ""
        message = f"resource_pattern fits no tool{hint}"
        raise InvalidArguments([Problem("resource_pattern", "value", message)])


def _check_values(tools: Sequence[AnyTool], arguments: Mapping[str, Sequence[Scalar]]) -> None:
    """A value that none of the tools takes would never be given."""
    for name, values in arguments.items():
        options = [options_of(tool, name) for tool in tools if name in tool.input.model_fields]
        if None in options:
            continue  # one of them takes any
        known = list(dict.fromkeys(value for some in options for value in some or ()))
        if unknown := [value for value in values if value not in known]:
            message = (
                f"conditions.arguments.{name} is never {unknown[0]!r}: it is one of "
                f"{', '.join(map(str, known))}"
            )
            raise InvalidArguments([Problem("conditions", "value", message)])


async def _check_new(ctx: Ctx, args: NewRule, conditions: dict[str, Any]) -> None:
    """A rule that is there already would change nothing, and stay when one of them is deleted."""
    where = args.model_dump(exclude={"conditions", "priority"})
    page = await ctx.world.administration.page("access_rule", where, None, MAX_ALIKE)
    for row in page.rows:
        if (row["conditions"] or {}) == conditions:
            raise Conflict(
                f"There is such a rule already, {row['id']} (priority {row['priority']}). "
                "operator.access_rule.update changes it."
            )


async def _check_subject(ctx: Ctx, subject_type: SubjectType, subject_id: str) -> None:
    if subject_type == "system":
        if subject_id:
            message = "subject_id must be empty where subject_type is system"
            raise InvalidArguments([Problem("subject_id", "value", message)])
    elif not subject_id:
        message = f"subject_id is required where subject_type is {subject_type}"
        raise InvalidArguments([Problem("subject_id", "missing", message)])
    elif subject_type == "agent":
        kind, _, key_id = subject_id.partition(":")
        if kind != "key" and subject_id not in ("pm", "pa", "worker"):
            message = "subject_id must be pm, pa, worker or key:ID where subject_type is agent"
            raise InvalidArguments([Problem("subject_id", "value", message)])
        if kind == "key" and not await ctx.world.administration.is_agents_key(ctx.tx, key_id):
            raise NotFound(
                f"There is no key {key_id!r} of an agent. `toolgate keys list` has them."
            )
    else:
        await needed(ctx, SUBJECT_KINDS[subject_type], id=subject_id)


def _kept(rule: Row) -> Conditions | None:
    """The conditions that a rule has; None where they cannot be read."""
    try:
        return Conditions.model_validate(rule["conditions"] or {})
    except ValidationError:
        return None


def _stored(conditions: Conditions | None) -> dict[str, Any] | None:
    if conditions:
        first, last = conditions.not_before, conditions.not_after
        if first is not None and last is not None and first > last:
            message = "conditions.not_before is after not_after, so the rule would never apply"
            raise InvalidArguments([Problem("conditions", "value", message)])
        if last is not None and last < timestamp():
            message = "conditions.not_after has passed, so the rule would never apply"
            raise InvalidArguments([Problem("conditions", "value", message)])
    return conditions.model_dump(exclude_none=True) if conditions else None


def _rule(row: Row) -> Rule:
    return shown(
        Rule,
        {
            **row,
            "resource_type": RESOURCE_TYPES[row["action"]],
            "conditions": row["conditions"] or {},
        },
    )

"""Access rules: what agents may do, within what their type allows.

A rule names a subject, an action and a pattern of resources, and allows or denies. One that denies
outweighs all that allow, whatever their priorities; what no rule allows is denied. Priority decides
which of several rules is named. Every database begins with one rule that allows agents all their
tools; without it, each permission has to be given.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, Protocol, get_args

from pydantic import AfterValidator, Field, ValidationError

from toolgate.db.transactions import Transaction
from toolgate.gate.audit_records import timestamp
from toolgate.gate.fields import plain_id
from toolgate.gate.principal import AgentType
from toolgate.gate.tool import Input
from toolgate.packs.orchestrator.access import Viewer

logger = logging.getLogger(__name__)

Action = Literal["mcp.tool.invoke"]
RuleEffect = Literal["allow", "deny"]
SubjectType = Literal["system", "user", "group", "project", "task", "agent"]
RULE_EFFECTS: tuple[RuleEffect, ...] = get_args(RuleEffect)
SUBJECT_TYPES: tuple[SubjectType, ...] = get_args(SubjectType)
INVOKE: Action = "mcp.tool.invoke"
RESOURCE_TYPES: Mapping[Action, str] = {INVOKE: "mcp.tool"}
"""What the patterns of an action are compared with."""

EVERYTHING = "00000000-0000-4000-8000-0000000000f1"
"""The rule that every database begins with."""
NAMED = "access-rule:"
"""How the audit names a rule, before its id."""
NO_RULE = "no-access-rule-allows"
MAX_PATTERN, MAX_STARS = 256, 4
MEDIA_TYPE = "content_type"
"""The argument that is a media type."""
MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z", re.ASCII)
"""Python alone would take many more spellings."""

NO_NAMES: AbstractSet[str] = frozenset()

Subject = tuple[SubjectType, str]
Scalar = str | int | float | bool


def _moment(value: str) -> str:
    """In the one form that can be compared as text."""
    try:
        moment = datetime.fromisoformat(value) if MOMENT.fullmatch(value) else None
    except ValueError:  # the 30th of February
        moment = None
    if moment is None:
        raise ValueError("must be a moment in UTC, such as 2026-12-31T18:00:00Z")
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


Moment = Annotated[str, AfterValidator(_moment)]


class Conditions(Input):
    """When a rule applies; each that is given must hold."""

    agent_types: list[Literal["pm", "pa", "worker"]] | None = Field(
        default=None, description="The caller is an agent of one of these types.", min_length=1
    )
    arguments: dict[str, list[Scalar]] | None = Field(
        default=None,
        description="Each of these arguments is given, and one of these values. For a rule that "
        "denies, a filter that is left out is every value.",
    )
    not_before: Moment | None = Field(default=None, description="From this moment on, in UTC.")
    not_after: Moment | None = Field(default=None, description="Until this moment, in UTC.")

    def without(self, argument: str) -> "Conditions":
        """The same but for what they say of an argument."""
        left = {name: one for name, one in (self.arguments or {}).items() if name != argument}
        return self.model_copy(update={"arguments": left})

    def hold(
        self,
        agent_type: AgentType | None,
        arguments: Mapping[str, Any],
        now: str,
        any_value: AbstractSet[str] = NO_NAMES,
    ) -> bool:
        """Whether all of them are met; arguments in `any_value` have every value at once."""
        if self.agent_types is not None and agent_type not in self.agent_types:
            return False
        if self.not_before is not None and now < self.not_before:
            return False
        if self.not_after is not None and now > self.not_after:
            return False
        return all(
            name in any_value or _is_one_of(name, arguments.get(name), values)
            for name, values in (self.arguments or {}).items()
        )


def _is_one_of(name: str, given: Any, values: Sequence[Scalar]) -> bool:
    """Compared with their types: 1 is not true, but it is 1.0. Ids may be in capitals."""
    if name == MEDIA_TYPE and isinstance(given, str):
        whole = _plain_media_type(given)
        return any(
            _plain_media_type(str(one)) in (whole, whole.partition(";")[0]) for one in values
        )
    return any(_kind(given) == _kind(value) and _plain(given) == _plain(value) for value in values)


def _plain_media_type(value: str) -> str:
    """In any case and spacing it is the same; a rule that names no parameters means all of them."""
    return value.lower().replace(" ", "")


def _kind(value: object) -> str:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "number" if is_number else type(value).__name__


def _plain(value: Any) -> Any:
    return plain_id(value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRule:
    """One rule."""

    id: str
    subject: Subject
    """Of type `system` it is everybody, and the id is empty."""
    action: Action
    pattern: "re.Pattern[str]"
    effect: RuleEffect
    priority: int
    conditions: Conditions

    @property
    def rank(self) -> tuple[bool, int, str]:
        """The first rule that applies decides: those that deny come first."""
        return (self.effect != "deny", -self.priority, self.id)


def compiled(pattern: str) -> "re.Pattern[str]":
    """A pattern of resources: as it stands, with `*` for any characters."""
    return re.compile(".*".join(re.escape(part) for part in pattern.split("*")), re.DOTALL)


def rule_of(row: Mapping[str, Any]) -> AccessRule:
    """A stored rule; one that cannot be read denies its subject everything, to be safe."""
    subject: Subject = (row["subject_type"], row["subject_id"])
    try:
        return AccessRule(
            id=row["id"],
            subject=subject,
            action=row["action"],
            pattern=compiled(row["resource_pattern"]),
            effect=row["effect"],
            priority=row["priority"],
            conditions=Conditions.model_validate(row["conditions"] or {}),
        )
    except ValidationError as problem:
        why = str(problem).replace("\n", " ")
        logger.error("Access rule %s cannot be read, so it denies all: %s", row["id"], why)  # noqa: TRY400 (no traceback)
        return AccessRule(
            id=row["id"],
            subject=subject,
            action=INVOKE,
            pattern=compiled("*"),
            effect="deny",
            priority=0,
            conditions=Conditions(),
        )


@dataclass(frozen=True, slots=True)
class Attempt:
    """What somebody is about to do."""

    action: Action
    resource: str
    agent_type: AgentType | None
    arguments: Mapping[str, Any]
    """As the tool will use them."""
    places: Sequence[frozenset[Subject]] = ()
    """The tasks and projects that it is about, each as the subjects whose permission is enough."""
    any_value: AbstractSet[str] = NO_NAMES
    """Filters that are left out: every value for rules that deny, and none for those that allow."""


def refusing_rule(rules: Sequence[AccessRule], attempt: Attempt) -> str | None:
    """The rule that refuses an attempt, as the audit names it; rules are in order of rank.

    Who is allowed it by a rule about a place may do it there: every place needs such a rule, unless
    one about the caller allows it everywhere.
    """
    now = timestamp()
    here = frozenset[Subject]().union(*attempt.places)
    allowed: set[Subject] = set()
    for rule in rules:
        any_value = attempt.any_value if rule.effect == "deny" else NO_NAMES
        if (
            rule.action == attempt.action
            and rule.pattern.fullmatch(attempt.resource)
            and rule.conditions.hold(attempt.agent_type, attempt.arguments, now, any_value)
        ):
            if rule.effect == "deny":
                return f"{NAMED}{rule.id}"
            if rule.subject not in here:
                return None
            allowed.add(rule.subject)
    everywhere = bool(allowed) and all(place & allowed for place in attempt.places)
    return None if everywhere else NO_RULE


def named_in_conditions(rules: Sequence[AccessRule], resource: str) -> AbstractSet[str]:
    """The arguments that rules about a resource look at."""
    return {
        name
        for rule in rules
        if rule.conditions.arguments and rule.pattern.fullmatch(resource)
        for name in rule.conditions.arguments
    }


@dataclass(frozen=True, slots=True)
class DeniedProject:
    """A project that a rule keeps a caller from reading, or some of its records."""

    project_id: str
    only: frozenset[str] | None = None
    """The ids or slugs that the rule names; None where it is about all of the project."""


@dataclass(frozen=True, slots=True)
class DeniedProjects:
    """What no list shows to a caller."""

    some: Sequence[DeniedProject] = ()
    every: bool = False
    """There are too many rules to look at: every project with one that denies anything."""


NONE_DENIED = DeniedProjects()


def denied_projects(
    rules: Sequence[AccessRule], attempts: Sequence[Attempt], naming: str
) -> Sequence[DeniedProject]:
    """The projects whose own rules refuse one of these attempts, were it about them.

    `naming` is the argument that names one record, which an attempt to list them does not have.
    """
    now, denied = timestamp(), list[DeniedProject]()
    for rule in rules:
        given = (rule.conditions.arguments or {}).get(naming)
        rest, project_id = rule.conditions.without(naming), rule.subject[1]
        for one in attempts:
            about = {**one.arguments, "project_id": project_id}
            if (
                rule.effect == "deny"
                and rule.action == one.action
                and rule.pattern.fullmatch(one.resource)
                and rest.hold(one.agent_type, about, now, one.any_value)
            ):
                only = None if given is None else frozenset(str(_plain(value)) for value in given)
                denied.append(DeniedProject(project_id, only))
                break
    return denied


@dataclass(frozen=True, slots=True)
class Memberships:
    """Where a user belongs, as the audit is told."""

    groups: Sequence[str]
    roles: Sequence[str]
    """The roles it has in projects, by itself or through a group."""


class AccessRules(Protocol):
    """The rules in force, and what they need to know of a caller."""

    async def subject_types(self) -> AbstractSet[SubjectType]:
        """The types of subjects that there are rules about."""
        ...

    async def about(self, subjects: frozenset[Subject]) -> Sequence[AccessRule]:
        """The rules about these subjects, in order of rank."""
        ...

    async def about_projects(self, viewer: Viewer) -> Sequence[AccessRule] | None:
        """The rules that may deny something in a caller's projects; None where they are many."""
        ...

    async def groups_of(self, user_id: str) -> Sequence[str]:
        """The groups of a user, as they are now."""
        ...

    async def memberships_of(self, user_id: str) -> Memberships:
        """The groups and roles of a user, as this worker knows them; kept in memory."""
        ...

    async def changed(self, tx: Transaction) -> None:
        """Let every worker read rules and memberships again, once this is committed."""
        ...

"""Who is calling."""

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from toolgate.gate.attributes import Attribute, words


class Role(StrEnum):
    """What a tool asks of its caller: public < user < admin."""

    PUBLIC = "public"
    USER = "user"
    ADMIN = "admin"


class AgentType(StrEnum):
    """What an agent is there for."""

    PM = "pm"
    """Project manager: runs the whole."""
    PA = "pa"
    """Project analyst: reads and reports."""
    WORKER = "worker"
    """Works on one task inside a sandbox."""


class Kind(StrEnum):
    """What sort of caller it is."""

    ADMIN_KEY = "admin_key"
    USER = "user"
    AGENT = "agent"
    NODE = "node"
    """A machine that reports itself; no agent."""
    ANONYMOUS = "anonymous"


class Actor(NamedTuple):
    """What acts for a caller, as far as that is known."""

    client_id: str | None = None
    """An OAuth client, or the key that takes its place."""
    grant_id: str | None = None
    """What allows it to."""


UNKNOWN_ACTOR = Actor()
BOUND = ("project_id", "task_id", "job_id", "node_id")
"""Ids that a key can be bound to, beside its user; a node is named by its slug."""


class AuditFields(NamedTuple):
    """What the audit says of a caller."""

    subject_type: str
    subject_id: str
    user_id: str | None
    agent_type: str | None
    role_names: str
    group_ids: str
    project_id: str | None
    task_id: str | None
    run_id: str | None
    job_id: str | None
    client_id: str | None
    grant_id: str | None


@dataclass(frozen=True, kw_only=True)
class Principal:
    """The caller, as its credentials prove it."""

    kind: Kind
    id: str
    roles: frozenset[Role] = frozenset()
    agent_type: AgentType | None = None
    user_id: str | None = None
    read_only: bool = False
    """Whether the person who allowed this client to act for them chose reading only."""
    bound: dict[str, str] = field(default_factory=dict[str, str], hash=False)
    """Ids that its key is bound to: some of `BOUND`."""
    client_id: str | None = None
    """The OAuth client that acts for the caller, if one does."""
    grant_id: str | None = None
    """What allows it to."""

    @cached_property
    def shape(self) -> tuple[Any, ...]:
        """All that policy looks at; callers of one shape get the same decisions."""
        return _shape(self.kind, self.roles, self.agent_type, self.read_only)

    @cached_property
    def scope(self) -> dict[str, str]:
        """The one id of each kind that it may name; any, where there is none.

        A user, and an agent that works for one, is bound to that user; an admin is not.
        """
        ids = {name.removesuffix("_id"): one for name, one in self.bound.items()}
        if self.user_id is not None and Role.ADMIN not in self.roles:
            ids["user"] = self.user_id
        return ids

    @cached_property
    def audit_fields(self) -> AuditFields:
        """The caller in the words of the audit; kept, since callers come back."""
        return AuditFields(
            subject_type=self.kind.value,
            subject_id=self.id,
            user_id=self.user_id,
            agent_type=self.agent_type.value if self.agent_type else None,
            role_names=_role_names(self.roles),
            group_ids="",
            project_id=self.bound.get("project_id"),
            task_id=self.bound.get("task_id"),
            run_id=None,
            job_id=self.bound.get("job_id"),
            client_id=self.client_id,
            grant_id=self.grant_id,
        )


@lru_cache(maxsize=256)
def _role_names(roles: frozenset[Role]) -> str:
    return ",".join(sorted(role.value for role in roles))


OF_PRINCIPAL: dict[str, Attribute[Principal]] = {
    "kind": Attribute("String", lambda who: who.kind.value, "the kind of caller", words(Kind)),
    "roles": Attribute(
        "Set<String>",
        lambda who: tuple(sorted(role.value for role in who.roles)),
        "the caller's roles; none for an agent or without a key",
        words(Role),
    ),
    "agent_type": Attribute(
        "String",
        lambda who: who.agent_type.value if who.agent_type else "",
        "the type of an agent, else empty",
        (*words(AgentType), ""),
    ),
    "read_only": Attribute(
        "Bool",
        lambda who: who.read_only,
        "whether a client acts with a read-only grant",
    ),
}
"""What policy looks at."""


@lru_cache(maxsize=256)
def _shape(
    kind: Kind, roles: frozenset[Role], agent_type: AgentType | None, read_only: bool
) -> tuple[Any, ...]:
    """There are few shapes, and many callers: each shape is made once."""
    who = Principal(kind=kind, id="", roles=roles, agent_type=agent_type, read_only=read_only)
    return tuple(one.value(who) for one in OF_PRINCIPAL.values())


ANONYMOUS = Principal(kind=Kind.ANONYMOUS, id="anonymous")


ROLES_OF: dict[Role, frozenset[Role]] = {
    Role.PUBLIC: frozenset(),
    Role.USER: frozenset({Role.USER}),
    Role.ADMIN: frozenset({Role.ADMIN}),
}


def of_role(role: Role, id: str, user_id: str | None = None) -> Principal:
    """A caller with one role."""
    kind = Kind.ADMIN_KEY if role is Role.ADMIN else Kind.USER
    return Principal(kind=kind, id=id, roles=ROLES_OF[role], user_id=user_id)


def of_person(user_id: str) -> Principal:
    """A user who signed in as such, without a key."""
    return Principal(
        kind=Kind.USER, id=f"user:{user_id}", roles=frozenset({Role.USER}), user_id=user_id
    )


def of_agent(agent_type: AgentType, id: str, user_id: str | None = None) -> Principal:
    """A caller that is an agent; it has no role, the rules for its type decide."""
    return Principal(kind=Kind.AGENT, id=id, agent_type=agent_type, user_id=user_id)


def of_node(slug: str, id: str) -> Principal:
    """A caller that is a node: it has no role, and may name itself only."""
    return Principal(kind=Kind.NODE, id=id, bound={"node_id": slug})

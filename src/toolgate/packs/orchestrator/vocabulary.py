"""The closed lists of pack `orchestrator`, and which status of a task or job follows which."""

import re
from collections.abc import Mapping
from typing import Literal, get_args

TaskStatus = Literal["pending", "running", "completed", "failed", "canceled", "superseded"]
JobStatus = Literal["queued", "running", "completed", "failed", "canceled", "lease_expired"]
ScopeType = Literal["system", "user", "group", "project", "task"]
ValueType = Literal["string", "number", "boolean", "object", "array"]
SkillScope = Literal["user", "group", "project", "global"]
MemberRole = Literal["owner", "admin", "operator", "member", "viewer"]
NodeStatus = Literal["registered", "active", "inactive", "drained"]
AckStatus = Literal["applied", "failed", "rolled_back"]
AvailabilityStatus = Literal["available", "pulling", "loading", "failed", "evicted"]
ArtifactType = Literal["ollama", "gguf", "safetensors"]

TASK_STATUSES: tuple[TaskStatus, ...] = get_args(TaskStatus)
JOB_STATUSES: tuple[JobStatus, ...] = get_args(JobStatus)
SCOPE_TYPES: tuple[ScopeType, ...] = get_args(ScopeType)
"""From the weakest to the strongest would be: system, group, user, project, task."""
VALUE_TYPES: tuple[ValueType, ...] = get_args(ValueType)
SKILL_SCOPES: tuple[SkillScope, ...] = get_args(SkillScope)
MEMBER_ROLES: tuple[MemberRole, ...] = get_args(MemberRole)
WRITING_ROLES: tuple[MemberRole, ...] = ("owner", "admin", "operator", "member")
"""Roles in a project that let their holder change what belongs to it; the others only read."""
ACK_STATUSES: tuple[AckStatus, ...] = get_args(AckStatus)
AVAILABILITY_STATUSES: tuple[AvailabilityStatus, ...] = get_args(AvailabilityStatus)
ARTIFACT_TYPES: tuple[ArtifactType, ...] = get_args(ArtifactType)

STRENGTH: Mapping[str, int] = {"system": 0, "group": 1, "user": 2, "project": 3, "task": 4}
"""Which scope's preference wins."""

RESERVED_SETTINGS = ("mcp", "agents", "security", "access")
"""Settings that open or close the gate: an agent that could change them would free itself."""
RESERVED_PREFERENCES = ("standards", "security", "model_routing", "agents")
"""Namespaces whose keys the system defines; a team's own keys are custom.ORGANIZATION.…"""

TASK_MOVES: Mapping[TaskStatus, tuple[TaskStatus, ...]] = {
    "pending": ("running", "canceled", "superseded"),
    "running": ("completed", "failed", "canceled", "superseded"),
    "completed": (),
    "failed": (),
    "canceled": (),
    "superseded": (),
}
JOB_MOVES: Mapping[JobStatus, tuple[JobStatus, ...]] = {
    "queued": ("running", "canceled"),
    "running": ("completed", "failed", "canceled", "lease_expired"),
    "lease_expired": ("queued", "failed", "canceled"),
    "completed": (),
    "failed": (),
    "canceled": (),
}
CLOSED: tuple[TaskStatus, ...] = tuple(one for one, next_ in TASK_MOVES.items() if not next_)
"""States that a task does not leave."""
IN_VAIN: tuple[TaskStatus, ...] = tuple(one for one in CLOSED if one != "completed")
"""States in which a task will never be completed."""
ENDED: tuple[JobStatus, ...] = tuple(one for one, next_ in JOB_MOVES.items() if not next_)
"""States that a job does not leave."""
HANDLE = re.compile(r"[a-z0-9][a-z0-9._-]*", re.ASCII)
"""Ids of users and groups, and slugs of projects."""


def is_reserved(key: str, namespaces: tuple[str, ...]) -> bool:
    """Whether a key is in one of these namespaces."""
    return key.partition(".")[0] in namespaces

"""What a record may hold: the fields that `system.*` shows, each of its type, and any others."""

# ruff: noqa: N815 (names of fields are the seed's)

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD_FORMAT
from toolgate.gate.fields import Whole

STATUSES = Literal["active", "idle", "busy", "offline", "error"]
PRIORITIES = Literal["critical", "high", "normal", "low"]
OPEN = ("pending", "assigned", "in_progress", "blocked")
"""How a task may be that is not done."""
PROGRESS = Literal[
    "pending", "assigned", "in_progress", "blocked", "completed", "failed", "cancelled"
]
MAX_NAMES = 1000
_TIME = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3])(:[0-5][0-9]){2}"
    r"(\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])"
)


def _time(value: str) -> str:
    if not _TIME.fullmatch(value):
        raise PydanticCustomError(
            TOLD_FORMAT, "must be a time as RFC 3339 has it, such as 2025-11-03T10:30:00Z"
        )
    return value


Time = Annotated[str, AfterValidator(_time)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Names = Annotated[list[Name], Field(max_length=MAX_NAMES)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[Whole, Field(ge=0)]


class Record(BaseModel):
    """Fields that every record may have; more than are named are kept as they are."""

    model_config = ConfigDict(extra="allow", strict=True)

    id: Name


class Metrics(BaseModel):
    """How an agent has done."""

    model_config = ConfigDict(extra="allow", strict=True)

    tasksCompleted: Count = 0
    successRate: Share = 0.0
    avgResponseTime: Annotated[float, Field(ge=0)] = 0.0
    uptime: Count = 0


class Agent(Record):
    """At `agents/{id}`."""

    name: Name
    type: Name | None = None
    status: STATUSES | None = None
    capabilities: Names = []
    currentTasks: Count | None = None
    maxTasks: Annotated[Whole, Field(ge=1)] | None = None
    lastSeen: Time | None = None
    metrics: Metrics | None = None


class Task(Record):
    """At `tasks/{id}`."""

    type: Name
    priority: PRIORITIES
    status: PROGRESS
    createdAt: Time
    title: Name | None = None
    description: str | None = None
    requiredCapabilities: Names = []
    assignedTo: Name | None = None
    deadline: Time | None = None
    dependencies: Names = []
    metadata: dict[str, Any] | None = None


class Skill(Record):
    """At `skills/{id}`."""

    name: Name
    category: Name | None = None
    description: str | None = None
    version: Name | None = None
    author: Name | None = None
    requirements: Names = []
    parameters: dict[str, Any] | None = None
    examples: Annotated[list[dict[str, Any]], Field(max_length=MAX_NAMES)] = []
    deprecated: bool | None = None
    successRate: Share | None = None
    lastUsed: Time | None = None

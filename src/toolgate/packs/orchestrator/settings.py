"""Settings of pack `orchestrator`."""

from typing import cast, get_args

from pydantic import Field, field_validator

from toolgate.packs.orchestrator.artifacts.store import TaskQuota
from toolgate.packs.orchestrator.skills.own_patterns import problem_of
from toolgate.packs.orchestrator.skills.patterns import Category
from toolgate.setting_types import Section, TextLists


class OrchestratorSettings(Section):
    """Pack `orchestrator`."""

    node_inactive_seconds: int = Field(
        default=90,
        ge=1,
        le=86400,
        description="How long after its last heartbeat a node counts as inactive; a node should "
        "send three in that time.",
    )
    task_artifacts: int = Field(
        default=10_000, ge=1, le=1_000_000, description="Most artifacts of one task."
    )
    task_artifact_bytes: int = Field(
        default=1024**3,
        ge=1,
        le=1024**5,
        description="Most bytes of one task's artifacts together.",
    )
    skill_patterns: TextLists = Field(
        default={},
        description="More patterns that no skill may hold, as regular expressions by category "
        "(`instruction_override`, `secret_bypass`, `hidden_instructions`). Repetitions need an "
        "upper bound: `{0,20}`, not `*`.",
    )

    @field_validator("skill_patterns")
    @classmethod
    def _compile(cls, given: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for category, patterns in given.items():
            if category not in get_args(Category):
                raise ValueError(f"{category!r} is none of {', '.join(get_args(Category))}")
            for pattern in patterns:
                if problem := problem_of(pattern):
                    raise ValueError(f"{pattern!r} is not taken: {problem}")
        return given

    @property
    def task_quota(self) -> TaskQuota:
        """What one task may hold."""
        return TaskQuota(self.task_artifacts, self.task_artifact_bytes)

    @property
    def patterns(self) -> dict[Category, tuple[str, ...]]:
        """The same, by categories that are known to be right."""
        return cast("dict[Category, tuple[str, ...]]", self.skill_patterns)

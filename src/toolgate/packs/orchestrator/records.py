"""Settings and preferences: records with a key, a typed value and a version that only grows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from toolgate.db.transactions import Transaction
from toolgate.packs.orchestrator.vocabulary import ScopeType, ValueType

SETTING = "setting"
"""The scope of system settings, in the history."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where records are: all settings are in one place, each scope's preferences in another."""

    scope_type: str = SETTING
    scope_id: str = ""


SETTINGS = Place()


@dataclass(frozen=True, slots=True)
class ScopeQuota:
    """How much one place may hold."""

    records: int
    value_bytes: int
    """Of all values together, as JSON."""

    def words(self, what: str) -> str:
        """The quota as callers are told of it."""
        return f"at most {self.records:,} {what} with {self.value_bytes // 1024:,} KiB of values"

    @property
    def share(self) -> "ScopeQuota":
        """What one user may have of it, where others share it."""
        return ScopeQuota((self.records + 1) // 2, (self.value_bytes + 1) // 2)


PREFERENCE_QUOTA = ScopeQuota(1_000, 512 * 1024)
"""Of each scope: those of a task, a project, a user and the system fit one answer together."""
MAX_PREFERENCE_BYTES = 64 * 1024
SETTING_QUOTA = ScopeQuota(10_000, 16 * 1024 * 1024)
RESERVED_PREFERENCE_QUOTA = ScopeQuota(500, 256 * 1024)
RESERVED_SETTING_QUOTA = ScopeQuota(2_000, 4 * 1024 * 1024)
"""Of keys that only admins change: they have room whatever others store."""
SHARE = "one user, or key without a user, has at most half"
KEPT_VERSIONS = 100
"""Of each key, in the history."""
KEPT_CHARACTERS = 8 * 1024 * 1024
"""Of each place, in the history, whatever the keys; the oldest changes go first."""
PINNED_VERSIONS, PINNED_CHARACTERS = 3, 2_000
"""Of each key that is there, the last changes of at most this size do not go with them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One setting or preference."""

    key: str
    value: Any
    value_type: ValueType
    version: int
    updated_at: str
    updated_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A value to be stored, and what goes into the history with it."""

    value: Any
    value_type: ValueType
    by: str
    reason: str | None = None
    owner: str
    """Whose share of a quota it takes."""
    limited: bool = True
    """Whether quotas that others share are for this caller; they are not for admins."""


@dataclass(frozen=True, slots=True)
class Page:
    """Some records in the order of their keys."""

    records: Sequence[Record]
    more: bool
    """Whether others follow."""


@dataclass(frozen=True, slots=True)
class Layer:
    """A preference as one scope has it."""

    scope_type: ScopeType
    scope_id: str
    record: Record


@dataclass(frozen=True, slots=True)
class OmittedScope:
    """A scope whose preferences did not all fit an answer."""

    scope_type: ScopeType
    scope_id: str
    keys: int


@dataclass(frozen=True, slots=True)
class Layers:
    """The preferences that decide about a task, weakest first, and what was left out."""

    found: Sequence[Layer]
    omitted: Sequence[OmittedScope]


class Records(Protocol):
    """Settings, or preferences."""

    async def get(self, place: Place, key: str) -> Record | None:
        """The record of this key."""
        ...

    async def page(self, place: Place, prefix: str, after: str | None, limit: int) -> Page:
        """Records whose keys begin with a prefix, by key; fewer than `limit` if they are large."""
        ...

    async def create(self, tx: Transaction, place: Place, key: str, change: Change) -> Record:
        """Store a new record; raises `Conflict` where there is one."""
        ...

    async def update(
        self, tx: Transaction, place: Place, key: str, change: Change, expected: int | None
    ) -> Record | None:
        """Change a record, if it has the expected version; None where there is none.

        Raises `Conflict` where it has another version.
        """
        ...

    async def delete(
        self,
        tx: Transaction,
        place: Place,
        key: str,
        *,
        expected: int | None,
        by: str,
        reason: str | None,
    ) -> bool:
        """Delete a record, if it has the expected version; False where there is none."""
        ...

    async def clear(self, tx: Transaction, place: Place, *, by: str, reason: str) -> None:
        """Delete every record of a place; the history stays."""
        ...


def fits(value: Any, value_type: ValueType) -> bool:
    """Whether a JSON value is of a type: exactly, so `true` is no number and null fits none."""
    match value_type:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "number":
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return number and math.isfinite(value)
        case "object":
            return isinstance(value, dict)
        case "array":
            return isinstance(value, list)

"""The preferences that apply to a task, read in one statement."""

from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Row, Select, and_, case, func, or_, select

from toolgate.db.engine import Database
from toolgate.gate.errors import ResultTooLarge
from toolgate.packs.orchestrator.access import Viewer
from toolgate.packs.orchestrator.records import Layer, Record
from toolgate.packs.orchestrator.sql.reach import reached_tasks
from toolgate.packs.orchestrator.sql.tables import members, preferences, tasks
from toolgate.packs.orchestrator.vocabulary import STRENGTH

MOST_EFFECTIVE_BYTES = 4 * 1024 * 1024
"""Of all the preferences that apply to a task, together."""


async def layers_of(database: Database, viewer: Viewer, task_id: str) -> Sequence[Layer] | None:
    """Every preference that applies to a task, weakest first; None without such a task."""
    wanted = _every_layer(viewer, task_id)
    rows = await database.read(lambda one: one.execute(wanted).all(), quick=True)
    if not rows:
        return None
    size = rows[0].total_bytes or 0
    if size > MOST_EFFECTIVE_BYTES:
        raise ResultTooLarge(
            f"The preferences that apply to this task have {size} bytes, over the limit of "
            f"{MOST_EFFECTIVE_BYTES}. Shorten or delete some of them."
        )
    found = [_layer(row) for row in rows if row.key is not None]
    return sorted(found, key=_strength)


def _every_layer(viewer: Viewer, task_id: str) -> "Select[*tuple[Any, ...]]":
    """One row for each preference; one without a key where a task has none."""
    owner: ColumnElement[str | None] = tasks.c.created_by
    if viewer.user_id is not None:  # what another user prefers elsewhere is not read
        owner = case((owner == viewer.user_id, owner))
    columns = (tasks.c.id, tasks.c.project_id, owner.label("owner"))
    task = select(*columns).where(tasks.c.id == task_id, reached_tasks(viewer)).cte("task")
    of_groups = select(members.c.group_id).where(members.c.user_id == task.c.owner)
    here = or_(
        preferences.c.scope_type == "system",
        and_(preferences.c.scope_type == "group", preferences.c.scope_id.in_(of_groups)),
        and_(preferences.c.scope_type == "user", preferences.c.scope_id == task.c.owner),
        and_(preferences.c.scope_type == "project", preferences.c.scope_id == task.c.project_id),
        and_(preferences.c.scope_type == "task", preferences.c.scope_id == task.c.id),
    )
    keys = list(preferences.primary_key)
    size = func.sum(preferences.c.size + func.length(preferences.c.key)).over()
    # Sizes first: where they are too large together, no value is read.
    sized = select(*keys, size.label("total_bytes")).select_from(
        task.outerjoin(preferences, and_(here, ~preferences.c.deleted))
    )
    listed = sized.cte("listed")
    same = and_(*(one == listed.c[one.name] for one in keys))
    fits = listed.c.total_bytes <= MOST_EFFECTIVE_BYTES
    return select(preferences, listed.c.total_bytes).select_from(
        listed.outerjoin(preferences, and_(same, fits))
    )


def _layer(row: "Row[Any]") -> Layer:
    return Layer(
        row.scope_type,
        row.scope_id,
        Record(
            key=row.key,
            value=orjson.loads(row.value),
            value_type=row.value_type,
            version=row.version,
            updated_at=row.updated_at,
            updated_by=row.updated_by,
        ),
    )


def _strength(layer: Layer) -> tuple[Any, ...]:
    return (STRENGTH[layer.scope_type], layer.scope_id, layer.record.updated_at, layer.record.key)

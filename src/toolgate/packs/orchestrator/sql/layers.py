"""The preferences that apply to a task, in one statement.

Of each key, only the value that wins is read. Keys and sizes come first: where they are too large
together, the values that do not fit are not read, and what they are of is told.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Select, and_, case, func, or_, select

from toolgate.packs.orchestrator.access import Viewer
from toolgate.packs.orchestrator.records import Layer, Layers, OmittedScope, Record
from toolgate.packs.orchestrator.sql.reach import reached_tasks
from toolgate.packs.orchestrator.sql.tables import members, preferences, tasks
from toolgate.packs.orchestrator.vocabulary import RESERVED_PREFERENCES, STRENGTH

MAX_EFFECTIVE_BYTES = 3840 * 1024
"""Of all the values that win, with their keys: an answer of 4 MiB has room for them."""
FIRST_SERVED = {"system": 1, "user": 2, "project": 3, "task": 4, "group": 5}
"""Who gets room first. All but groups have room for what a scope may hold, and groups add up."""
BEGINNINGS = {"string": '"', "number": "-0123456789", "boolean": "tf", "object": "{", "array": "["}
"""How JSON of each type begins."""
KEY_BYTES, SOURCE_BYTES = 6, 80
"""What a key and a source take in JSON, beside their texts."""

columns = preferences.c


def layers_of(viewer: Viewer, task_id: str, *, sources: bool) -> "Select[*tuple[Any, ...]]":
    """One row for each preference that may win; one without a key where a task has none."""
    candidates = _candidates(viewer, task_id, sources=sources).cte("candidates")
    strongest = (candidates.c.strength.desc(), candidates.c.scope_id.desc())
    same_key = (candidates.c.key, candidates.c.usable)
    rank = func.row_number().over(partition_by=same_key, order_by=strongest)
    ranked = select(candidates, rank.label("place")).cte("ranked")
    order = (ranked.c.served, ranked.c.scope_id.desc(), ranked.c.key)
    used = func.sum(ranked.c.cost).over(order_by=order)
    # What is not of its type overrides nothing, and is reported.
    wins = or_(ranked.c.place == 1, ~ranked.c.usable)
    listed = select(ranked, used.label("used")).where(wins).cte("listed")
    names = ("scope_type", "scope_id", "key")
    same = and_(*(columns[name] == listed.c[name] for name in names))
    stored = ("value", "value_type", "version", "updated_at", "updated_by")
    return select(
        *(listed.c[name] for name in names), *(columns[name] for name in stored)
    ).select_from(listed.outerjoin(preferences, and_(same, listed.c.used <= MAX_EFFECTIVE_BYTES)))


def read_layers(rows: Sequence[Any]) -> Layers:
    """The preferences of these rows, weakest first."""
    found = [_layer(row) for row in rows if row.value is not None]
    left_out = Counter(
        (row.scope_type, row.scope_id) for row in rows if row.key is not None and row.value is None
    )
    omitted = [
        OmittedScope(scope_type, scope_id, keys)
        for (scope_type, scope_id), keys in sorted(left_out.items())
    ]
    return Layers(sorted(found, key=_strength), omitted)


def _candidates(viewer: Viewer, task_id: str, *, sources: bool) -> "Select[*tuple[Any, ...]]":
    """Every preference that applies, without its value."""
    owner: ColumnElement[str | None] = tasks.c.created_by
    if viewer.user_id is not None:  # what another user prefers elsewhere is not read
        owner = case((owner == viewer.user_id, owner))
    task = (
        select(tasks.c.id, tasks.c.project_id, owner.label("owner"))
        .where(tasks.c.id == task_id, reached_tasks(viewer))
        .cte("task")
    )
    of_groups = select(members.c.group_id).where(members.c.user_id == task.c.owner)
    here = or_(
        columns.scope_type == "system",
        and_(columns.scope_type == "group", columns.scope_id.in_(of_groups)),
        and_(columns.scope_type == "user", columns.scope_id == task.c.owner),
        and_(columns.scope_type == "project", columns.scope_id == task.c.project_id),
        and_(columns.scope_type == "task", columns.scope_id == task.c.id),
    )
    cost = columns.size + func.length(columns.key) + KEY_BYTES
    if sources:
        cost += func.length(columns.key) + func.length(columns.scope_id) + SOURCE_BYTES
    reserved = or_(*(columns.key.startswith(f"{one}.") for one in RESERVED_PREFERENCES))
    return select(
        columns.scope_type,
        columns.scope_id,
        columns.key,
        case(STRENGTH, value=columns.scope_type).label("strength"),
        # Reserved keys are an admin's: nobody else's values may take their room.
        case((reserved, 0), else_=case(FIRST_SERVED, value=columns.scope_type)).label("served"),
        _is_usable().label("usable"),
        cost.label("cost"),
    ).select_from(task.outerjoin(preferences, and_(here, ~columns.deleted)))


def _is_usable() -> ColumnElement[bool]:
    """Whether a value is of its type, or null, which hides others."""
    first = func.substr(columns.value, 1, 1)
    fitting = (
        and_(columns.value_type == value_type, first.in_(list(characters)))
        for value_type, characters in BEGINNINGS.items()
    )
    return or_(first == "n", *fitting)


def _layer(row: Any) -> Layer:
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
    return (STRENGTH[layer.scope_type], layer.scope_id, layer.record.key)

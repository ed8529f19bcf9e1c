"""The relations around an entity, in one statement however many neighbours it has."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    CTE,
    BindParameter,
    ColumnElement,
    Select,
    bindparam,
    case,
    null,
    or_,
    select,
    union,
)

from toolgate.db.prepared import PreparedStatement
from toolgate.db.questions import Questions
from toolgate.packs.content.sql.tables import entities, relations
from toolgate.packs.content.store import Row

SHOWN = ("id", "relation_type", "from_id", "to_id", "notes", "created_at")
SHORT = ("id", "entity_type", "title", "slug", "status")
R = relations.c
AT_ROOT = or_(R.from_id == bindparam("root"), R.to_id == bindparam("root"))
NEWEST = (R.created_at.desc(), R.id.desc())


def edges_around(project: str, root: str, depth: int, types: Sequence[str]) -> Questions[list[Row]]:
    """Relations of the root, then those of its neighbours; newest first in each part."""
    wanted = {f"type_{number}": one for number, one in enumerate(sorted(set(types)))}
    rows = yield _around(depth, len(wanted)), {"project": project, "root": root, **wanted}
    return [_edge(row) for row in rows]


def _edge(row: Sequence[Any]) -> Row:
    """A relation as it goes over the wire. Written out: there may be thousands."""
    id, relation_type, begins, ends, notes, created_at, other, kind, title, slug, status = row
    related: Row | None = None
    if other is not None:
        related = {"id": other, "entityType": kind, "title": title, "slug": slug, "status": status}
    return {
        "id": id,
        "relationType": relation_type,
        "fromEntityId": begins,
        "toEntityId": ends,
        "notes": notes,
        "createdAt": created_at,
        "relatedEntity": related,
    }


@lru_cache
def _around(depth: int, types: int) -> PreparedStatement:
    """The statement for so many types of relations; none for all."""
    own = [R.project_id == bindparam("project")]
    if types:
        wanted: list[BindParameter[str]] = [bindparam(f"type_{one}") for one in range(types)]
        own.append(R.relation_type.in_(wanted))
    if depth == 1:
        return PreparedStatement(_edges(_other_end()).where(*own, AT_ROOT).order_by(*NEWEST))
    near = select(R.id, R.from_entity, R.to_entity).where(*own, AT_ROOT).cte("near")
    ends = union(
        select(near.c.from_entity).where(near.c.from_entity.is_not(None)),
        select(near.c.to_entity).where(near.c.to_entity.is_not(None)),
    )
    reached = ends.cte("reached")
    touching = [
        select(R.id).where(*own, end.in_(select(reached.c.from_entity)))
        for end in (R.from_id, R.to_id)
    ]
    every = union(select(near.c.id), *touching)
    step = case((AT_ROOT, 1), else_=2)
    edges = _edges(_farther_end(reached)).where(R.id.in_(every))
    return PreparedStatement(edges.order_by(step, *NEWEST))


def _edges(related: ColumnElement[Any]) -> Select[Any]:
    mine = (entities.c.id == related) & (entities.c.project_id == R.project_id)
    joined = relations.outerjoin(entities, mine)
    ends = (entities.c[name].label(f"related_{name}") for name in SHORT)
    statement: Any = select(*(R[name] for name in SHOWN), *ends)
    return statement.select_from(joined)


def _other_end() -> ColumnElement[Any]:
    """Of a relation of the root: where it leads to, or comes from."""
    return case(
        (R.from_id == R.to_id, null()),
        (R.from_id == bindparam("root"), R.to_entity),
        else_=R.from_entity,
    )


def _farther_end(reached: CTE) -> ColumnElement[Any]:
    """Of a neighbour's relation: where it points to, unless only that end was reached before."""
    starts = select(reached.c.from_entity)
    new = or_(R.from_entity.is_(None), R.from_entity.not_in(starts))
    return case(
        (R.from_id == R.to_id, null()),
        (R.from_id == bindparam("root"), R.to_entity),
        (R.to_id == bindparam("root"), R.from_entity),
        (new, R.from_entity),
        else_=R.to_entity,
    )

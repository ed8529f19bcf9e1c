"""The relations around an entity, in one statement however many neighbours it has."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Select, bindparam, case, or_, select, union

from toolgate.adapters.sql.content_pages import camel
from toolgate.db.content_tables import entities, relations
from toolgate.ports.content import Row

SHOWN = ("id", "relation_type", "from_id", "to_id", "notes", "created_at")
WIRE = ("id", "relationType", "fromEntityId", "toEntityId", "notes", "createdAt")
SHORT = ("id", "entity_type", "title", "slug", "status")
SHORT_WIRE = tuple(camel(name) for name in SHORT)
ENDS = (entities.alias("from_end"), entities.alias("to_end"))


def edges_around(
    connection: Connection, project: str, root: str, depth: int, types: Sequence[str]
) -> list[Row]:
    """Relations of the root, then those of its neighbours; newest first in each part."""
    values = {"project": project, "root": root, "types": list(types)}
    statement = _around(depth, bool(types))
    if not types:
        del values["types"]
    return [_edge(row) for row in connection.execute(statement, values)]


@lru_cache
def _around(depth: int, typed: bool) -> Select[Any]:
    r = relations.c
    own = [r.project_id == bindparam("project")]
    if typed:
        own.append(r.relation_type.in_(bindparam("types", expanding=True)))
    at_root = or_(r.from_id == bindparam("root"), r.to_id == bindparam("root"))
    newest = (r.created_at.desc(), r.id.desc())
    if depth == 1:
        return _edges().where(*own, at_root).order_by(*newest)
    near = select(r.id, r.from_entity, r.to_entity).where(*own, at_root).cte("near")
    reached = union(select(near.c.from_entity), select(near.c.to_entity)).cte("reached")
    touching = [
        select(r.id).where(*own, end.in_(select(reached.c.from_entity)))
        for end in (r.from_id, r.to_id)
    ]
    all_ids = union(select(near.c.id), *touching)
    step = case((at_root, 1), else_=2)
    return _edges().where(r.id.in_(all_ids)).order_by(step, *newest)


def _edges() -> Select[Any]:
    joined = relations
    for end, entity in zip((relations.c.from_entity, relations.c.to_entity), ENDS, strict=True):
        mine = (entity.c.id == end) & (entity.c.project_id == relations.c.project_id)
        joined = joined.outerjoin(entity, mine)
    ends = [entity.c[name] for entity in ENDS for name in SHORT]
    return select(*(relations.c[name] for name in SHOWN), *ends).select_from(joined)


def _edge(row: Any) -> Row:
    edge: Row = dict(zip(WIRE, row[:6], strict=True))
    edge["from"] = dict(zip(SHORT_WIRE, row[6:11], strict=True)) if row[6] is not None else None
    edge["to"] = dict(zip(SHORT_WIRE, row[11:16], strict=True)) if row[11] is not None else None
    return edge

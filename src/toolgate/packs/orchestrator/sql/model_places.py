"""Where models are, of a list: found by the index, a bounded number for each model."""

from typing import Any

import orjson
from sqlalchemy import Connection, Label, ScalarSelect, Select, Text, cast, func, select

from toolgate.packs.orchestrator.models import (
    MAX_COUNTED_NODES,
    MAX_LISTED_NODES,
    NOWHERE,
    Placement,
)
from toolgate.packs.orchestrator.sql.tables import availability, models, nodes

PLACES, TOTAL = "places", "total"
SHOWN = ("node_slug", "version", "status", "reported_at")


def places_of(name: Any, oldest: str) -> "Select[*tuple[Any, ...]]":
    """The active nodes that have a model."""
    slug: Label[str] = nodes.c.slug.label("node_slug")
    shown = (availability.c[one] for one in SHOWN[1:])
    return (
        select(slug, *shown)
        .join_from(availability, nodes, nodes.c.id == availability.c.node_id)
        .where(
            availability.c.kind == "model",
            availability.c.name == name,
            ~nodes.c.drained,
            nodes.c.last_seen_at > oldest,
        )
    )


def first_places(connection: Connection, oldest: str) -> "ScalarSelect[str]":
    """A column of `models`: a JSON array of places, each with how many were found."""
    found = places_of(models.c.name, oldest).correlate(models)
    found = found.order_by(availability.c.node_id).limit(MAX_COUNTED_NODES).subquery()
    listed = select(found, func.count().over().label(TOTAL))
    listed = listed.order_by(found.c.node_slug, found.c.version).limit(MAX_LISTED_NODES)
    each = listed.subquery()
    columns = [each.c[one] for one in (*SHOWN, TOTAL)]
    if connection.dialect.name == "postgresql":
        places = func.json_agg(func.json_build_array(*columns))
    else:
        places = func.json_group_array(func.json_array(*columns))
    return select(cast(places, Text)).scalar_subquery()


def placement_of(places: str | None) -> Placement:
    """The places as they were found, by slug."""
    rows = sorted(orjson.loads(places or "[]"))
    if not rows:
        return NOWHERE
    return Placement([dict(zip(SHOWN, row, strict=False)) for row in rows], rows[0][-1])

"""The lists of pack `content`: their tables, their orders and what narrows them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, FromClause, Table, bindparam

from toolgate.packs.content.sql.tables import blocks, entities, performance, projects

Condition = ColumnElement[bool]


@dataclass(frozen=True, eq=False, slots=True)
class Listing:
    """A table and the order of its list; the id is always the last key.

    Lists of projects begin with the newest day of `dated`.
    Conditions take the value of the filter of the same name. Texts are filters that look for a
    substring in one of some folded columns.
    """

    table: Table
    order: tuple[str, ...]
    """Columns, with a minus where the last comes first."""
    dated: Any = None
    conditions: Mapping[str, Condition] = field(default_factory=dict[str, Condition])
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])

    def order_by(self, rows: FromClause) -> list[ColumnElement[Any]]:
        """The order of the list, on its table or on rows chosen from it."""
        return [
            rows.c[name[1:]].desc() if name.startswith("-") else rows.c[name] for name in self.order
        ]


def _equal(table: Table, *names: str) -> dict[str, Condition]:
    return {name: table.c[name] == bindparam(name) for name in names}


PROJECTS = Listing(projects, ("slug", "id"))

ENTITIES = Listing(
    entities,
    ("-created_at", "-id"),
    entities.c.created_at,
    conditions=_equal(entities, "entity_type", "status", "concept_kind"),
    texts={"search": ("title_folded", "slug_folded")},
)

PERFORMANCE = Listing(
    performance,
    ("-date_start", "-date_end", "query", "page_url", "-id"),
    performance.c.date_start,
    conditions={
        **_equal(performance, "entity_id"),
        "date_start": performance.c.date_start >= bindparam("date_start"),
        "date_end": performance.c.date_end <= bindparam("date_end"),
    },
    texts={"query": ("query_folded",), "page_url": ("page_url_folded",)},
)

BLOCKS = Listing(
    blocks,
    ("-created_at", "-id"),
    blocks.c.created_at,
    conditions={
        **_equal(blocks, "entity_id", "claim_type"),
        "verified_before": blocks.c.verified_until <= bindparam("verified_before"),
        "verified_after": blocks.c.verified_until >= bindparam("verified_after"),
    },
    texts={"topic_tag": ("topic_tag_folded",)},
)

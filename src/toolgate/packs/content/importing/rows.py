"""The rows of each kind: what they may hold, and how it must agree."""

import math
import re
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD
from toolgate.packs.content.pack import Uuid, as_timestamp
from toolgate.packs.content.store import ClaimType, ConceptKind, Difficulty, EntityType, Status
from toolgate.packs.content.vocabulary import RELATION_TYPES

MAX_KEY = 1000
MAX_COUNT = 2**31 - 1
MAX_DIGITS = 100
OTHER_ENDS = {"distribution": "distributionEvent", "source": "sourceItem"}


def _rule_error(reason: str) -> PydanticCustomError:
    return PydanticCustomError(TOLD, "{reason}", {"reason": reason})


def _storable(value: str) -> str:
    if "\0" in value:
        raise _rule_error("must not hold the character NUL")
    return value


def _moment(value: str) -> str:
    """Exports write timestamps with no fraction, or a short one, more often than in full."""
    if moment := as_timestamp(value):
        return moment
    raise _rule_error(
        "must be a real date, YYYY-MM-DD, or a UTC timestamp, YYYY-MM-DDTHH:mm:ss.sssZ"
    )


def _url(value: str) -> str:
    try:
        parts = urlsplit(value)
        good = parts.scheme in ("http", "https") and parts.hostname
    except ValueError:
        good = False
    if not good or re.search(r"\s", value):
        raise _rule_error("must be a whole URL, https://…")
    return value


def _number(value: object) -> object:
    if isinstance(value, bool):
        raise _rule_error("must be a number")
    return value


def _finite(value: object) -> object:
    # Asked before the bounds are, which would say that NaN is too small.
    if isinstance(value, str | float):
        try:
            finite = math.isfinite(float(value))
        except ValueError:
            return value
        if not finite:
            raise _rule_error("must be a finite number")
    return _number(value)


def _count(value: object) -> object:
    # The rule itself: the parser says of such numbers only that it cannot read them.
    if isinstance(value, str) and len(value) > MAX_DIGITS:
        raise _rule_error(f"must be a whole number up to {MAX_COUNT}")
    if isinstance(value, float) and value > MAX_COUNT:
        raise _rule_error(f"must be less than or equal to {MAX_COUNT}")
    return _finite(value)


def _share(value: object) -> object:
    """`7.03%`, as Search Console writes it, is 0.0703."""
    if not isinstance(value, str) or not value.endswith("%"):
        return _finite(value)
    try:
        share = round(float(value[:-1]) / 100, 10)
    except ValueError:
        raise _rule_error("must be a share such as 0.0703 or 7.03%") from None
    return _finite(share)


def _relation_type(value: str) -> str:
    if value not in RELATION_TYPES:
        raise _rule_error(f"must be one of {', '.join(RELATION_TYPES)}")
    return value


Words = Annotated[str, AfterValidator(_storable)]
Key = Annotated[Words, Field(max_length=MAX_KEY)]
Url = Annotated[Key, AfterValidator(_url)]
Moment = Annotated[str, AfterValidator(_moment)]
Count = Annotated[int, BeforeValidator(_count), Field(ge=0, le=MAX_COUNT)]
Finite = Field(allow_inf_nan=False)


class ImportedRow(BaseModel):
    """What every row may have."""

    id: Uuid | None = None
    project_id: Uuid | None = None


class Entity(ImportedRow):
    """A row of kind `entities`."""

    entity_type: EntityType
    title: Words
    slug: Annotated[Key, Field(pattern=r"^[^\s/]+$")]
    summary: Words | None = None
    difficulty: Difficulty | None = None
    concept_kind: ConceptKind | None = None
    repo_url: Url | None = None
    status: Status = "draft"
    canonical_url: Url | None = None
    last_verified_at: Moment | None = None
    created_at: Moment | None = None
    updated_at: Moment | None = None

    @model_validator(mode="after")
    def _as_its_type(self) -> Self:
        if self.concept_kind and self.entity_type != "concept":
            raise _rule_error("conceptKind is only for concepts")
        return self


class Relation(ImportedRow):
    """A row of kind `relations`; its type says of which types the ends are."""

    relation_type: Annotated[str, AfterValidator(_relation_type)]
    from_id: Key
    to_id: Key
    from_type: str | None = None
    to_type: str | None = None
    notes: Words | None = None
    created_at: Moment | None = None

    @model_validator(mode="after")
    def _of_these_types(self) -> Self:
        first, *_, last = self.relation_type.lower().split("_")
        ends = OTHER_ENDS.get(first, first), OTHER_ENDS.get(last, last)
        if (self.from_type or ends[0], self.to_type or ends[1]) != ends:
            raise _rule_error(f"{self.relation_type} leads from {ends[0]} to {ends[1]}")
        self.from_type, self.to_type = ends
        return self


class Performance(ImportedRow):
    """A row of kind `performance`."""

    query: Key
    page_url: Url
    impressions: Count
    clicks: Count
    ctr: Annotated[float | None, BeforeValidator(_share), Field(ge=0, le=1), Finite] = None
    avg_position: Annotated[float, BeforeValidator(_finite), Field(gt=0), Finite]
    date_start: Moment
    date_end: Moment
    entity_id: Key | None = None
    captured_at: Moment | None = None

    @model_validator(mode="after")
    def _figures_agree(self) -> Self:
        if self.clicks > self.impressions:
            raise _rule_error(f"clicks ({self.clicks}) exceed impressions ({self.impressions})")
        if self.date_start > self.date_end:
            raise _rule_error("dateStart must be <= dateEnd")
        if self.ctr is None:
            self.ctr = self.clicks / self.impressions if self.impressions else 0.0
        return self


class Block(ImportedRow):
    """A row of kind `blocks`."""

    entity_id: Key
    text: Words
    claim_type: ClaimType
    source_citation: Words | None = None
    verified_until: Moment | None = None
    topic_tag: Words | None = None
    created_at: Moment | None = None
    updated_at: Moment | None = None


MODELS: dict[str, type[ImportedRow]] = {
    "entities": Entity,
    "relations": Relation,
    "blocks": Block,
    "performance": Performance,
}

# The fields that keep what is stored where a file does not have them. Not ctr: it follows from
# the figures. Not the moments: created_at always stays, and the others say when a row came in.
KEPT: dict[str, set[str]] = {
    "entities": {
        "summary",
        "difficulty",
        "concept_kind",
        "repo_url",
        "status",
        "canonical_url",
        "last_verified_at",
    },
    "relations": {"notes"},
    "blocks": {"source_citation", "verified_until", "topic_tag"},
    "performance": {"entity_id"},
}
# What a new row has in them.
DEFAULTS: dict[str, dict[str, Any]] = {
    kind: {name: MODELS[kind].model_fields[name].default for name in sorted(names)}
    for kind, names in KEPT.items()
}

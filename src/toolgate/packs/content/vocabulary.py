"""The closed lists of pack `content`: the database checks them, the tools name them."""

from typing import Literal, get_args

EntityType = Literal["guide", "concept", "project", "news"]
Status = Literal["draft", "publish_requested", "published", "archived"]
ConceptKind = Literal["standard", "model", "comparison"]
Difficulty = Literal["beginner", "intermediate", "advanced"]
ClaimType = Literal["statistic", "comparison", "definition", "howto_step"]

ENTITY_TYPES: tuple[str, ...] = get_args(EntityType)
STATUSES: tuple[str, ...] = get_args(Status)
CONCEPT_KINDS: tuple[str, ...] = get_args(ConceptKind)
DIFFICULTIES: tuple[str, ...] = get_args(Difficulty)
CLAIM_TYPES: tuple[str, ...] = get_args(ClaimType)

RELATION_TYPES = (
    "GUIDE_USES_CONCEPT",
    "GUIDE_EXPLAINS_CONCEPT",
    "GUIDE_REFERENCES_SOURCE",
    "CONCEPT_RELATES_TO_CONCEPT",
    "CONCEPT_REFERENCES_SOURCE",
    "NEWS_DERIVED_FROM_SOURCE",
    "NEWS_REFERENCES_SOURCE",
    "NEWS_REFERENCES_CONCEPT",
    "PROJECT_IMPLEMENTS_CONCEPT",
    "PROJECT_REFERENCES_SOURCE",
    "PROJECT_HAS_GUIDE",
    "DISTRIBUTION_PROMOTES_GUIDE",
    "DISTRIBUTION_PROMOTES_CONCEPT",
    "DISTRIBUTION_PROMOTES_PROJECT",
    "DISTRIBUTION_PROMOTES_NEWS",
    "VIDEO_EXPLAINS_GUIDE",
    "VIDEO_EXPLAINS_CONCEPT",
    "VIDEO_EXPLAINS_PROJECT",
    "VIDEO_EXPLAINS_NEWS",
)


def fold(text: str) -> str:
    """Text as substring searches compare it: without case, accents kept."""
    return text.casefold()

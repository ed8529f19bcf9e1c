"""What the pack's handlers may ask."""

from dataclasses import dataclass

from toolgate.packs.content.store import ContentStore


@dataclass(frozen=True, slots=True)
class ContentWorld:
    """Published content, and the project of a request that names none."""

    store: ContentStore
    default_project: str

"""Models, as the tools ask for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from toolgate.db.transactions import Transaction
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.vocabulary import ArtifactType

MAX_VERSIONS = 100
MAX_ARTIFACTS = 10
"""Of one version."""
MAX_LISTED_NODES, MAX_COUNTED_NODES = 50, 200
"""Of a model in a list: as many are named, and as many are looked for."""
MAX_NODES = 1000
"""Of a model that is read alone."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Where a model is: the first nodes by slug, and on how many it was found."""

    rows: Sequence[Row]
    total: int


NOWHERE = Placement((), 0)


@dataclass(frozen=True, slots=True)
class ModelPage:
    """Some models in the order of their names, and where each is."""

    rows: Sequence[Row]
    placements: Mapping[str, Placement]
    """By name."""
    more: bool


@dataclass(frozen=True, slots=True)
class WholeModel:
    """A model with its versions, their artifacts and where it is."""

    row: Row
    versions: Sequence[Row]
    artifacts: Sequence[Row]
    placement: Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class NewArtifact:
    """A file of a version."""

    artifact_type: ArtifactType
    sha256: str
    size_bytes: int
    cache_path: str | None
    source_uri: str | None


class Models(Protocol):
    """The registry of models. What takes an id answers None where there is no such model."""

    async def page(self, after: str | None, limit: int) -> ModelPage:
        """Models by name; fewer than `limit` if they are large."""
        ...

    async def whole(self, model_id: str) -> WholeModel | None:
        """One model with all that belongs to it."""
        ...

    async def create(
        self, tx: Transaction, name: str, vendor: str | None, description: str | None
    ) -> Row:
        """Store a model; raises `Conflict` where the name is taken."""
        ...

    async def update(self, tx: Transaction, model_id: str, change: Mapping[str, str]) -> Row | None:
        """Change name, vendor or description; raises `Conflict` where the name is taken."""
        ...

    async def delete(self, tx: Transaction, model_id: str) -> Row | None:
        """Delete a model with its versions and artifacts."""
        ...

    async def add_version(
        self,
        tx: Transaction,
        model_id: str,
        version: str,
        capabilities: Mapping[str, Any],
        default_parameters: Mapping[str, Any],
    ) -> Row | None:
        """Store a version; raises `Conflict` where it is there, or where there are too many."""
        ...

    async def remove_version(self, tx: Transaction, model_id: str, version: str) -> bool:
        """Delete a version with its artifacts; False where there is none."""
        ...

    async def add_artifact(
        self, tx: Transaction, model_id: str, version: str, artifact: NewArtifact
    ) -> Row | None:
        """Store an artifact of a version; raises `Conflict` where there are too many."""
        ...

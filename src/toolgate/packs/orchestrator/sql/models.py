"""Models in the gate's database."""

import uuid
from collections.abc import Mapping
from typing import Any

import orjson
from sqlalchemy import Connection, func, select
from sqlalchemy.exc import IntegrityError

from toolgate.db.engine import Database
from toolgate.db.records import delete_records, insert_record, update_records
from toolgate.db.transactions import Transaction
from toolgate.gate.errors import Conflict
from toolgate.packs.orchestrator.models import (
    MAX_ARTIFACTS,
    MAX_NODES,
    MAX_VERSIONS,
    NOWHERE,
    ModelPage,
    NewArtifact,
    Placement,
    WholeModel,
)
from toolgate.packs.orchestrator.nodes.liveness import Liveness
from toolgate.packs.orchestrator.rows import Row
from toolgate.packs.orchestrator.sql.model_places import (
    PLACES,
    TOTAL,
    first_places,
    placement_of,
    places_of,
)
from toolgate.packs.orchestrator.sql.pages import bounded, every, first
from toolgate.packs.orchestrator.sql.tables import (
    availability,
    model_artifacts,
    model_versions,
    models,
    nodes,
)


class SqlModels:
    """Reads and stores models."""

    def __init__(self, database: Database, liveness: Liveness) -> None:
        self._database = database
        self._liveness = liveness

    async def page(self, after: str | None, limit: int) -> ModelPage:
        """Models by name; fewer than `limit` if they are large."""
        wanted = select(models).order_by(models.c.name).limit(limit + 1)
        if after is not None:
            wanted = wanted.where(models.c.name > after)

        def look(connection: Connection) -> ModelPage:
            places = first_places(connection, self._liveness.oldest()).label(PLACES)
            rows = every(connection, wanted.add_columns(places))
            fitting, more = bounded(rows, limit)
            placed = {row["name"]: placement_of(row[PLACES]) for row in fitting}
            return ModelPage(fitting, placed, more)

        return await self._database.read(look, quick=True)

    async def whole(self, model_id: str) -> WholeModel | None:
        """One model with all that belongs to it, in four statements however much that is."""

        def look(connection: Connection) -> WholeModel | None:
            row = _model(connection, model_id)
            if row is None:
                return None
            of_model = model_versions.c.model_id == model_id
            versions = select(model_versions).where(of_model).order_by(model_versions.c.version)
            files = select(model_artifacts).where(model_artifacts.c.model_id == model_id)
            files = files.order_by(model_artifacts.c.version, model_artifacts.c.id)
            return WholeModel(
                row,
                every(connection, versions),
                every(connection, files),
                self._placement(connection, row["name"]),
            )

        return await self._database.read(look, quick=True)

    async def create(
        self, tx: Transaction, name: str, vendor: str | None, description: str | None
    ) -> Row:
        """Store a model; raises `Conflict` where the name is taken."""
        now = self._liveness.now()
        row: dict[str, Any] = {
            "id": str(uuid.uuid4()),
            "name": name,
            "vendor": vendor,
            "description": description,
            "created_at": now,
            "updated_at": now,
        }

        def work(connection: Connection) -> Row:
            try:
                insert_record(tx, connection, models, row)
            except IntegrityError:
                raise _taken(name) from None
            return row

        return await tx.run(work)

    async def update(self, tx: Transaction, model_id: str, change: Mapping[str, str]) -> Row | None:
        """Change name, vendor or description; raises `Conflict` where the name is taken."""
        new = {**change, "updated_at": self._liveness.now()}

        def work(connection: Connection) -> Row | None:
            try:
                update_records(tx, connection, models, [models.c.id == model_id], new)
            except IntegrityError:
                raise _taken(change["name"]) from None
            return _model(connection, model_id)

        return await tx.run(work)

    async def delete(self, tx: Transaction, model_id: str) -> Row | None:
        """Delete a model with its versions and artifacts."""

        def work(connection: Connection) -> Row | None:
            row = _model(connection, model_id, lock=True)
            if row is not None:
                for table in (model_artifacts, model_versions):
                    delete_records(tx, connection, table, [table.c.model_id == model_id])
                delete_records(tx, connection, models, [models.c.id == model_id])
            return row

        return await tx.run(work)

    async def add_version(
        self,
        tx: Transaction,
        model_id: str,
        version: str,
        capabilities: Mapping[str, Any],
        default_parameters: Mapping[str, Any],
    ) -> Row | None:
        """Store a version; raises `Conflict` where it is there, or where there are too many."""
        row = {
            "model_id": model_id,
            "version": version,
            "capabilities": orjson.dumps(capabilities).decode(),
            "default_parameters": orjson.dumps(default_parameters).decode(),
            "created_at": self._liveness.now(),
        }

        def work(connection: Connection) -> Row | None:
            # The model's row is locked: of two that add at once, one counts after the other.
            if _model(connection, model_id, lock=True) is None:
                return None
            own = select(model_versions.c.version).where(model_versions.c.model_id == model_id)
            known = connection.scalars(own).all()
            if version in known:
                raise Conflict(f"The model has a version {version!r} already. Remove it first.")
            _refuse_more("A model", "versions", len(known), MAX_VERSIONS)
            insert_record(tx, connection, model_versions, row)
            return row

        return await tx.run(work)

    async def remove_version(self, tx: Transaction, model_id: str, version: str) -> bool:
        """Delete a version with its artifacts; False where there is none."""

        def work(connection: Connection) -> bool:
            if _model(connection, model_id, lock=True) is None:
                return False
            found = 0
            for table in (model_artifacts, model_versions):
                own = (table.c.model_id == model_id, table.c.version == version)
                found = delete_records(tx, connection, table, own)
            return found > 0

        return await tx.run(work)

    async def add_artifact(
        self, tx: Transaction, model_id: str, version: str, artifact: NewArtifact
    ) -> Row | None:
        """Store an artifact of a version; raises `Conflict` where there are too many."""
        row: dict[str, Any] = {
            "id": str(uuid.uuid4()),
            "model_id": model_id,
            "version": version,
            "artifact_type": artifact.artifact_type,
            "sha256": artifact.sha256,
            "size_bytes": artifact.size_bytes,
            "cache_path": artifact.cache_path,
            "source_uri": artifact.source_uri,
            "created_at": self._liveness.now(),
        }

        def work(connection: Connection) -> Row | None:
            if _model(connection, model_id, lock=True) is None:
                return None
            one = (model_versions.c.model_id == model_id, model_versions.c.version == version)
            if connection.execute(select(model_versions.c.version).where(*one)).first() is None:
                return None
            own = (model_artifacts.c.model_id == model_id, model_artifacts.c.version == version)
            many = connection.scalar(select(func.count()).where(*own)) or 0
            _refuse_more("A version", "artifacts", many, MAX_ARTIFACTS)
            insert_record(tx, connection, model_artifacts, row)
            return row

        return await tx.run(work)

    def _placement(self, connection: Connection, name: str) -> Placement:
        """Where a model is now: on nodes that are active, in one statement."""
        found = places_of(name, self._liveness.oldest())
        found = found.add_columns(func.count().over().label(TOTAL))
        found = found.order_by(nodes.c.slug, availability.c.version).limit(MAX_NODES)
        rows = every(connection, found)
        return Placement(rows, rows[0][TOTAL]) if rows else NOWHERE


def _model(connection: Connection, model_id: str, *, lock: bool = False) -> Row | None:
    wanted = select(models).where(models.c.id == model_id)
    return first(connection, wanted.with_for_update() if lock else wanted)


def _taken(name: str) -> Conflict:
    return Conflict(f"There is a model {name!r} already. Choose another name.")


def _refuse_more(whose: str, what: str, many: int, most: int) -> None:
    if many >= most:
        raise Conflict(f"{whose} has at most {most} {what}. Remove some first.")

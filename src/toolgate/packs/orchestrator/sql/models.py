"""Models in the gate's database."""

import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import orjson
from sqlalchemy import Connection, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from toolgate.db.engine import Database
from toolgate.db.transactions import Transaction
from toolgate.gate.errors import Conflict
from toolgate.packs.orchestrator.models import (
    MOST_ARTIFACTS,
    MOST_LISTED_NODES,
    MOST_NODES,
    MOST_VERSIONS,
    NOWHERE,
    ModelPage,
    NewArtifact,
    Placement,
    Row,
    WholeModel,
)
from toolgate.packs.orchestrator.nodes.liveness import Liveness
from toolgate.packs.orchestrator.sql.pages import bounded, every, first, size_of
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
            rows = every(connection, wanted)
            names = [row["name"] for row in rows[:limit]]
            placed = self._placements(connection, names, MOST_LISTED_NODES)

            def size(row: Row) -> int:
                placement = placed.get(row["name"], NOWHERE)
                return size_of(row) + sum(size_of(one) for one in placement.rows)

            fitting, more = bounded(rows, limit, size)
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
            placed = self._placements(connection, [row["name"]], MOST_NODES)
            return WholeModel(
                row,
                every(connection, versions),
                every(connection, files),
                placed.get(row["name"], NOWHERE),
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
                connection.execute(insert(models), row)
            except IntegrityError:
                raise _taken(name) from None
            return row

        return await tx.run(work)

    async def update(self, tx: Transaction, model_id: str, change: Mapping[str, str]) -> Row | None:
        """Change name, vendor or description; raises `Conflict` where the name is taken."""
        new = {**change, "updated_at": self._liveness.now()}

        def work(connection: Connection) -> Row | None:
            try:
                connection.execute(update(models).where(models.c.id == model_id).values(new))
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
                    connection.execute(delete(table).where(table.c.model_id == model_id))
                connection.execute(delete(models).where(models.c.id == model_id))
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
            _refuse_more("A model", "versions", len(known), MOST_VERSIONS)
            connection.execute(insert(model_versions), row)
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
                found = connection.execute(delete(table).where(*own)).rowcount
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
            _refuse_more("A version", "artifacts", many, MOST_ARTIFACTS)
            connection.execute(insert(model_artifacts), row)
            return row

        return await tx.run(work)

    def _placements(
        self, connection: Connection, names: Collection[str], most: int
    ) -> Mapping[str, Placement]:
        """Where models are now, by name: on nodes that are active, in one statement."""
        order = (nodes.c.slug, availability.c.version)
        number = func.row_number().over(partition_by=availability.c.name, order_by=order)
        total = func.count().over(partition_by=availability.c.name)
        found = (
            select(
                availability.c.name,
                nodes.c.slug.label("node_slug"),
                availability.c.version,
                availability.c.status,
                availability.c.reported_at,
                number.label("number"),
                total.label("total"),
            )
            .join(nodes, nodes.c.id == availability.c.node_id)
            .where(
                availability.c.kind == "model",
                availability.c.name.in_(names),
                ~nodes.c.drained,
                nodes.c.last_seen_at > self._liveness.oldest(),
            )
            .subquery()
        )
        wanted = select(found).where(found.c.number <= most)
        wanted = wanted.order_by(found.c.name, found.c.number)
        return _by_name(every(connection, wanted))


def _by_name(rows: Iterable[Row]) -> Mapping[str, Placement]:
    shown = ("node_slug", "version", "status", "reported_at")
    placed: dict[str, list[Row]] = {}
    totals: dict[str, int] = {}
    for row in rows:
        placed.setdefault(row["name"], []).append({name: row[name] for name in shown})
        totals[row["name"]] = row["total"]
    return {name: Placement(placed[name], totals[name]) for name in placed}


def _model(connection: Connection, model_id: str, *, lock: bool = False) -> Row | None:
    wanted = select(models).where(models.c.id == model_id)
    return first(connection, wanted.with_for_update() if lock else wanted)


def _taken(name: str) -> Conflict:
    return Conflict(f"There is a model {name!r} already. Choose another name.")


def _refuse_more(whose: str, what: str, many: int, most: int) -> None:
    if many >= most:
        raise Conflict(f"{whose} has at most {most} {what}. Remove some first.")

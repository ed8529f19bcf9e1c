"""Demo data: loaded once into an empty embedded database, never over anybody's own."""

from sqlalchemy import Connection, select

from toolgate.app import App
from toolgate.db import content_tables
from toolgate.db.content_loading import store
from toolgate.db.tables import documents
from toolgate.packs.appdata.demo import DEMO
from toolgate.packs.content import demo as content
from toolgate.ports.documents import DocumentExists


class NotForDemo(RuntimeError):
    """The documents are somebody's own, or elsewhere."""


async def load(app: App) -> int:
    """Store the demo documents that are not there yet; return how many were stored.

    Refuses a store where somebody's own documents lie beside an incomplete demo.
    """
    if app.settings.uses_firestore:
        raise NotForDemo("Documents are in Firestore, so no demo data was loaded.")
    database = app.gate.database
    keys = select(documents.c.collection, documents.c.id)
    present = set(await database.read(lambda c: [tuple(row) for row in c.execute(keys)]))
    wanted = {(collection, id) for collection, id, _ in DEMO}
    if present - wanted and wanted - present:
        raise NotForDemo("The database holds documents already, so no demo data was loaded.")
    stored = 0
    async with database.transaction() as tx:
        for collection, id, fields in DEMO:
            if (collection, id) in present:
                continue
            try:
                await app.gate.ports.documents.create(tx, collection, fields, id)
                stored += 1
            except DocumentExists:
                continue
    await database.write(_load_content)
    return stored


def _load_content(connection: Connection) -> None:
    """Store the demo's projects and all in them, unless there are projects already."""
    if connection.execute(select(content_tables.projects.c.id)).first() is not None:
        return
    for table, rows in (
        (content_tables.projects, content.PROJECTS),
        (content_tables.entities, content.ENTITIES),
        (content_tables.relations, content.RELATIONS),
        (content_tables.performance, content.PERFORMANCE),
        (content_tables.blocks, content.BLOCKS),
    ):
        store(connection, table, rows)

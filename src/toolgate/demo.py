"""Demo data: loaded once into an empty embedded database, never over anybody's own."""

from sqlalchemy import select

from toolgate.app import App
from toolgate.db.tables import documents
from toolgate.packs.appdata.demo import DEMO
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
    return stored

"""Demo data that is documents."""

from collections.abc import Iterable, Sequence

from toolgate.gate.offer import NotForDemo, Site
from toolgate.gate.tool import Pack
from toolgate.ports.documents import Create, DocumentExists, Fields, Query

Document = tuple[str, str, Fields]
"""Collection, id and fields."""


async def store_demo(
    pack: Pack, site: Site, demo: Sequence[Document], collections: Iterable[str] = ()
) -> int:
    """Store the demo documents that are not there yet; return how many were stored.

    Raises `NotForDemo` where somebody's own documents, in these collections or in those of the
    demo, lie beside an incomplete demo.
    """
    documents = site.documents
    if not documents.joins_transaction:
        message = f"Documents of pack {pack.name} are in Firestore"
        raise NotForDemo(f"{message}, so no demo data was loaded into it.")
    demo_ids = {(collection, id) for collection, id, _ in demo}
    present = {
        (collection, one.id)
        for collection in {*collections, *(collection for collection, _ in demo_ids)}
        for one in await documents.query(Query(collection, limit=len(demo) + 1))
    }
    if present - demo_ids and demo_ids - present:
        message = f"Pack {pack.name} holds documents already"
        raise NotForDemo(f"{message}, so no demo data was loaded into it.")
    stored = 0
    async with site.database.transaction() as tx:
        for collection, id, fields in demo:
            if (collection, id) not in present:
                try:
                    await documents.write(tx, Create(collection, id, fields))
                    stored += 1
                except DocumentExists:
                    continue
    return stored

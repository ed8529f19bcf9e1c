"""Going through a collection, a page at a time, however large it is."""

from collections.abc import AsyncGenerator

from toolgate.ports.documents import (
    DOCUMENT_ID,
    Cursor,
    DocumentReader,
    Filter,
    Order,
    Query,
    StoredDocument,
)

PAGE = 100


async def pages_of(
    documents: DocumentReader, collection: str, *filters: Filter
) -> AsyncGenerator[list[StoredDocument]]:
    """Such documents, by id; whoever gets a page may change it before asking for the next one."""
    start: Cursor | None = None
    while True:
        query = Query(collection, filters, (Order(DOCUMENT_ID),), limit=PAGE, start=start)
        found = list(await documents.query(query))
        if found:
            yield found
        if len(found) < PAGE:
            return
        start = Cursor((found[-1].id,), inclusive=False)

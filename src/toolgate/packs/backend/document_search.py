"""How a query of documents is done: page by page, and bounded."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from toolgate.db.row_writes import weight_of
from toolgate.gate.errors import InvalidArguments, Problem, ResultTooLarge
from toolgate.packs.backend.document_queries import (
    MAX_LOOKED_AT,
    MAX_RESULTS,
    Pattern,
    QueryInput,
)
from toolgate.packs.backend.patterns import BadPattern
from toolgate.packs.backend.text_filters import (
    MAX_EFFORT,
    Effort,
    TextFilter,
    TooMuchText,
    in_thread,
    passing,
    text_filter,
)
from toolgate.ports.documents import (
    DOCUMENT_ID,
    Cursor,
    DocumentReader,
    Fields,
    Order,
    Query,
    StoredDocument,
)
from toolgate.ports.filters import field_at
from toolgate.ports.ordering import full_order

MAX_BYTES = 16 * 1024 * 1024
"""Of all documents that one query returns; the limit on a call's whole answer is lower."""
PAGE = 100


async def find_documents(
    store: DocumentReader, given: QueryInput, name: str, effort: Effort | None = None
) -> list[tuple[str, Fields]]:
    """The documents that a query finds, by their paths; `name` is what errors call it.

    `effort` is what searching for patterns may take, of all queries of a call together.
    """
    if not given.collection:
        return []
    search = _Search(await _filters(given.filter or (), name), effort or Effort(), name)
    first, last = given.filterIndex or (0, MAX_RESULTS + 1)
    most = min(given.limit or MAX_RESULTS + 1, last)
    found: list[tuple[str, Fields]] = []
    size = 0
    async for one in search.documents(store, given.query(), most):
        found.append((f"{given.collection}/{one.id}", one.fields))
        size += weight_of(one.fields, MAX_BYTES)
        if size > MAX_BYTES:
            raise ResultTooLarge(f"{name} finds more than {MAX_BYTES:,} bytes. Give a lower limit.")
        if len(found) == most:
            break
    chosen = found[first:]
    if len(chosen) > MAX_RESULTS:
        raise _problem(
            name,
            f"finds more than {MAX_RESULTS} documents. Give a limit, and go on with orderBy "
            "and startAfter",
        )
    return chosen


async def _filters(given: Sequence[Pattern], name: str) -> list[TextFilter]:
    """The patterns, compiled; each in its turn, so that all that others wait for is one."""
    filters: list[TextFilter] = []
    for at, one in enumerate(given):
        try:
            filters.append(await in_thread(partial(text_filter, one.field, one.matches)))
        except BadPattern as problem:
            field = f"{name}.filter[{at}].matches"
            message = f"{field} is no regular expression: {problem}"
            raise InvalidArguments([Problem(field, "format", message)]) from None
    return filters


class _Search(NamedTuple):
    """Patterns, and what looking for them may take."""

    filters: Sequence[TextFilter]
    effort: Effort
    name: str

    async def documents(
        self, store: DocumentReader, query: Query, most: int
    ) -> AsyncIterator[StoredDocument]:
        """The documents whose texts have the patterns, in order."""
        looked_at = 0
        async for page in _pages(store, query, PAGE if self.filters else min(most, PAGE)):
            for one in await self._passing(page) if self.filters else page:
                yield one
            looked_at += len(page)
            if self.filters and looked_at >= MAX_LOOKED_AT:
                words = f"looks through more than {MAX_LOOKED_AT:,} documents: narrow it by where"
                raise _problem(self.name, words)

    async def _passing(self, page: Sequence[StoredDocument]) -> Sequence[StoredDocument]:
        try:
            return await in_thread(partial(passing, page, self.filters, self.effort))
        except TooMuchText:
            raise _problem(
                f"{self.name}.filter",
                f"searches more than a call may: bytes of texts times the size of the patterns is "
                f"over {MAX_EFFORT:,}. Narrow it by where, or use simpler patterns",
            ) from None


async def _pages(
    store: DocumentReader, query: Query, size: int
) -> AsyncIterator[Sequence[StoredDocument]]:
    """All documents of a query, some at a time; a page goes on where the one before ended."""
    query = replace(query, order=full_order(query), limit=size)
    while True:
        page = await store.query(query)
        yield page
        if len(page) < size:
            return
        query = replace(query, start=_place_of(page[-1], query.order), limit=PAGE)
        size = PAGE


def _place_of(document: StoredDocument, order: Sequence[Order]) -> Cursor:
    fields = document.fields
    values = (
        document.id if one.field == DOCUMENT_ID else field_at(fields, one.path) for one in order
    )
    return Cursor(tuple(values), inclusive=False)


def _problem(name: str, words: str) -> InvalidArguments:
    return InvalidArguments([Problem(name, "range", f"{name} {words}.")])

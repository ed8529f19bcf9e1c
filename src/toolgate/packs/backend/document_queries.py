"""A query of documents as a caller writes it, and how it is done: page by page, and bounded."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, Self, cast

from pydantic import AfterValidator, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from toolgate.db.row_writes import weight_of
from toolgate.gate.arguments import TOLD, TOLD_FORMAT
from toolgate.gate.errors import InvalidArguments, Problem, ResultTooLarge
from toolgate.gate.fields import Between
from toolgate.gate.tool import Input
from toolgate.packs.backend.text_filters import BadPattern, TextFilter, text_filter
from toolgate.ports.documents import (
    DOCUMENT_ID,
    Cursor,
    DocumentReader,
    Fields,
    Filter,
    Operator,
    Order,
    Query,
    StoredDocument,
)
from toolgate.ports.filters import field_at
from toolgate.ports.ordering import full_order
from toolgate.ports.rules import broken_field_rule, broken_operand_rule, broken_path_rule
from toolgate.ports.users import holds_secret, is_of_users

MAX_RESULTS = 1000
"""Documents that one query returns."""
MAX_LOOKED_AT = 20_000
"""Documents that one query reads for a filter by pattern."""
MAX_BYTES = 16 * 1024 * 1024
"""Of all documents that one query returns; the limit on a call's whole answer is lower."""
PAGE = 100
MAX_CONDITIONS = 30
MAX_ORDERS = 10
MAX_PATTERN = 1000
OPERATORS = ", ".join(Operator)
CURSORS = ("startAt", "startAfter", "endAt", "endBefore")


def _operator(value: str) -> str:
    if value not in set(Operator):
        raise PydanticCustomError(
            TOLD, "operator must be one of: {operators}", {"operators": OPERATORS}
        )
    return value


def _field(value: str) -> str:
    if value != DOCUMENT_ID and (problem := broken_field_rule(value)):
        raise PydanticCustomError(TOLD_FORMAT, "field {problem}", {"problem": problem})
    return value


def _collection(path: str) -> str:
    plain = path.removeprefix("/").removesuffix("/")
    if plain and (problem := broken_path_rule(plain, of_document=False)):
        raise PydanticCustomError(TOLD_FORMAT, "collection {problem}", {"problem": problem})
    return plain


FieldPath = Annotated[str, AfterValidator(_field)]


class Condition(Input):
    """One condition of a query."""

    field: FieldPath = Field(
        min_length=1, description="Field to compare; dots reach into maps, as in `auth.email`."
    )
    operator: Annotated[str, AfterValidator(_operator)] = Field(
        description=f"One of: {', '.join(f'`{one}`' for one in Operator)}.",
        json_schema_extra={"enum": [one.value for one in Operator]},
    )
    value: Any = Field(
        description="What to compare with; for `in`, `not-in` and `array-contains-any` a list."
    )

    @model_validator(mode="after")
    def _comparable(self) -> Self:
        problem = broken_operand_rule(Operator(self.operator), self.value)
        if self.field == DOCUMENT_ID:
            problem = f"is of a field, and {DOCUMENT_ID} is none: use `firestore_read`"
        if problem:
            raise PydanticCustomError(TOLD, "value {problem}", {"problem": problem})
        return self


class Ordering(Input):
    """One field to order by."""

    field: FieldPath = Field(
        min_length=1, description=f"Field to order by; `{DOCUMENT_ID}` is the document's id."
    )
    order: Literal["asc", "desc"] = Field(default="asc", description="The direction.")


class Pattern(Input):
    """A pattern that a text must contain."""

    field: str = Field(
        min_length=1,
        description="Field with the text; `a || b` where it may be in one or the other.",
    )
    matches: str = Field(
        default="",
        max_length=MAX_PATTERN,
        description="A regular expression (RE2 syntax), also as `/expression/i`.",
    )

    @model_validator(mode="after")
    def _compiles(self) -> Self:
        try:
            text_filter(self.field, self.matches)
        except BadPattern as problem:
            raise PydanticCustomError(
                TOLD_FORMAT, "matches is no regular expression: {problem}", {"problem": problem}
            ) from None
        return self


Place = Annotated[int, Between(0, MAX_LOOKED_AT)]


class QueryInput(Input):
    """One query."""

    collection: Annotated[str, AfterValidator(_collection)] = Field(
        description="Path of the collection, such as `users` or `orders/1/items`; a query with "
        "an empty one is left out."
    )
    where: list[Condition] | None = Field(
        default=None, max_length=MAX_CONDITIONS, description="Conditions that must all hold."
    )
    orderBy: list[Ordering] | None = Field(  # noqa: N815 (as callers write it)
        default=None,
        max_length=MAX_ORDERS,
        description="Fields to order by. Documents without one of them are left out.",
    )
    limit: Annotated[int, Between(1, MAX_RESULTS)] | None = Field(
        default=None,
        description=f"How many documents at most. Without it, all there are, up to {MAX_RESULTS}.",
    )
    startAt: Any = Field(  # noqa: N815
        default=None,
        description="Value of the first field of `orderBy` to begin with; or a list of values, "
        "one for each of its first fields.",
    )
    startAfter: Any = Field(default=None, description="The same, to begin after.")  # noqa: N815
    endAt: Any = Field(default=None, description="The same, to end with.")  # noqa: N815
    endBefore: Any = Field(default=None, description="The same, to end before.")  # noqa: N815
    filter: list[Pattern] | None = Field(
        default=None,
        max_length=MAX_CONDITIONS,
        description="Patterns that texts must contain, all of them; `limit` counts what is left.",
    )
    filterIndex: list[Place] | None = Field(  # noqa: N815
        default=None,
        min_length=2,
        max_length=2,
        description="Which of the documents found: from the first number on, counted from 0, up "
        "to before the second.",
    )

    @field_validator(*CURSORS)
    @classmethod
    def _in_order(cls, value: Any) -> Any:
        problems = (broken_operand_rule(Operator.EQUAL, one) for one in _values(value))
        if problem := next((one for one in problems if one), None):
            raise PydanticCustomError(TOLD, "A cursor {problem}", {"problem": problem})
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if problem := self._problem():
            raise PydanticCustomError(TOLD, "{problem}", {"problem": problem})
        return self

    def _problem(self) -> str | None:
        orders = self.orderBy or []
        for first, second in (CURSORS[:2], CURSORS[2:]):
            if None not in (getattr(self, first), getattr(self, second)):
                return f"{first} and {second} exclude each other: give one of them"
        for name in CURSORS:
            if len(_values(getattr(self, name))) > len(orders):
                return f"{name} has a value for each field of orderBy at most: order by them"
        if self.filterIndex and self.filterIndex[0] > self.filterIndex[1]:
            return "filterIndex must not end before it begins"
        if is_of_users(self.collection) and any(map(holds_secret, self._fields())):
            return "api.privateKey is a secret: a query must not use it, nor api as a whole"
        return None

    def _fields(self) -> list[str]:
        patterns = [name for one in self.filter or () for name in one.field.split(" || ")]
        asked = [*(self.where or ()), *(self.orderBy or ())]
        return [name.strip() for name in patterns] + [one.field for one in asked]

    def query(self) -> Query:
        """What to ask a store for, but for patterns and limits."""
        return Query(
            self.collection,
            [Filter(one.field, Operator(one.operator), one.value) for one in self.where or ()],
            [Order(one.field, one.order == "desc") for one in self.orderBy or ()],
            start=_cursor(self.startAt, self.startAfter),
            end=_cursor(self.endAt, self.endBefore),
        )


def _values(cursor: Any) -> list[Any]:
    if cursor is None:
        return []
    return cast("list[Any]", cursor) if isinstance(cursor, list) else [cursor]


def _cursor(inclusive: Any, exclusive: Any) -> Cursor | None:
    values = _values(inclusive if inclusive is not None else exclusive)
    return Cursor(tuple(values), inclusive is not None) if values else None


async def find_documents(
    store: DocumentReader, given: QueryInput, name: str
) -> list[tuple[str, Fields]]:
    """The documents that a query finds, by their paths; `name` is what errors call it."""
    if not given.collection:
        return []
    filters = [text_filter(one.field, one.matches) for one in given.filter or ()]
    first, last = given.filterIndex or (0, MAX_RESULTS + 1)
    most = min(given.limit or MAX_RESULTS + 1, last)
    found: list[tuple[str, Fields]] = []
    size = 0
    async for one in _passing(store, given.query(), filters, most, name):
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


async def _passing(
    store: DocumentReader, query: Query, filters: Sequence[TextFilter], most: int, name: str
) -> AsyncIterator[StoredDocument]:
    """The documents whose texts have the patterns, in order."""
    looked_at = 0
    async for page in _pages(store, query, PAGE if filters else min(most, PAGE)):
        for one in page:
            if all(passes(one.fields) for passes in filters):
                yield one
        looked_at += len(page)
        if filters and looked_at >= MAX_LOOKED_AT:
            raise _problem(
                name, f"looks through more than {MAX_LOOKED_AT:,} documents: narrow it by where"
            )


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

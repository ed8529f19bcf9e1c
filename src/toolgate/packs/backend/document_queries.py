"""A query of documents as a caller writes it."""

from typing import Annotated, Any, Literal, Self, cast

from pydantic import AfterValidator, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD, TOLD_FORMAT
from toolgate.gate.fields import Between
from toolgate.gate.tool import Input
from toolgate.packs.backend.patterns import MAX_PATTERN
from toolgate.packs.backend.text_filters import field_names
from toolgate.ports.documents import (
    DOCUMENT_ID,
    MAX_FIELD_BYTES,
    Cursor,
    Filter,
    Operator,
    Order,
    Query,
)
from toolgate.ports.rules import broken_field_rule, broken_operand_rule, broken_path_rule
from toolgate.ports.users import holds_secret, is_of_users

MAX_RESULTS = 1000
"""Documents that one query returns."""
MAX_LOOKED_AT = 20_000
"""Documents that one query reads for a filter by pattern."""
MAX_CONDITIONS = 30
MAX_ORDERS = 10
MAX_FILTERS = 10
MAX_ALTERNATIVES = 10
OPERATORS = ", ".join(Operator)
SHAPE = 'must list objects such as {"field": "plan", "operator": "==", "value": "basic"}'
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


def _alternatives(value: str) -> str:
    """Fields of a pattern, each of which must be one."""
    names = field_names(value)
    if len(names) > MAX_ALTERNATIVES:
        raise PydanticCustomError(
            TOLD_FORMAT,
            "field must name at most {most} fields, joined by ||",
            {"most": MAX_ALTERNATIVES},
        )
    for name in names:
        _field(name)
    return value


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

    @model_validator(mode="before")
    @classmethod
    def _is_object(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise PydanticCustomError(TOLD, "where {shape}", {"shape": SHAPE})
        return cast("Any", value)

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

    field: Annotated[str, AfterValidator(_alternatives)] = Field(
        min_length=1,
        max_length=MAX_ALTERNATIVES * MAX_FIELD_BYTES,
        description="Field with the text; `a || b` where it may be in one or the other, up to "
        f"{MAX_ALTERNATIVES} fields.",
    )
    matches: str = Field(
        default="",
        max_length=MAX_PATTERN,
        description="A regular expression (RE2 syntax), also as `/expression/i`.",
    )


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
        max_length=MAX_FILTERS,
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
        patterns = [name for one in self.filter or () for name in field_names(one.field)]
        asked = [*(self.where or ()), *(self.orderBy or ())]
        return patterns + [one.field for one in asked]

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

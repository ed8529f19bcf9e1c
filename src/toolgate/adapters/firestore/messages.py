"""The message types of Firestore's protocol.

They are made at run time: a type checker cannot see into them.
"""

from typing import Any, TypeAlias, cast

try:
    from google.cloud.firestore_v1.field_path import FieldPath
    from google.cloud.firestore_v1.types import common, document, firestore, query, write
except ImportError as missing:
    raise ImportError(
        "Firestore needs packages that are not installed. Install toolgate[firestore]."
    ) from missing

Message: TypeAlias = Any


def _plain(kind: object) -> Any:
    """The class below the one for programmers, which costs several times as much."""
    return cast(Any, kind).pb()


Value = _plain(document.Value)
Document = _plain(document.Document)
ArrayValue = _plain(document.ArrayValue)
MapValue = _plain(document.MapValue)
Mask = _plain(common.DocumentMask)
Precondition = _plain(common.Precondition)
WriteMessage = _plain(write.Write)
FieldTransform = _plain(write.DocumentTransform.FieldTransform)
StructuredQuery = _plain(query.StructuredQuery)
Selector = _plain(query.StructuredQuery.CollectionSelector)
FilterMessage = _plain(query.StructuredQuery.Filter)
Composite = _plain(query.StructuredQuery.CompositeFilter)
Comparison = _plain(query.StructuredQuery.FieldFilter)
Unary = _plain(query.StructuredQuery.UnaryFilter)
OrderMessage = _plain(query.StructuredQuery.Order)
Field = _plain(query.StructuredQuery.FieldReference)
CursorMessage = _plain(query.Cursor)

ComparisonOperator: Any = query.StructuredQuery.FieldFilter.Operator
UnaryOperator: Any = query.StructuredQuery.UnaryFilter.Operator
CompositeOperator: Any = query.StructuredQuery.CompositeFilter.Operator
Direction: Any = query.StructuredQuery.Direction
ServerValue: Any = write.DocumentTransform.FieldTransform.ServerValue
requests: Any = firestore
"""Requests and responses, as the client takes and gives them."""


def quoted(segments: list[str]) -> str:
    """A field path as Firestore takes it, each segment in quotes where need be."""
    path: Any = FieldPath(*segments)
    return path.to_api_repr()

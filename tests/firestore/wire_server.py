"""A Firestore server for tests: the real protocol, Firestore's own rules, in memory.

It knows what the adapter uses (BatchGetDocuments, Commit with the precondition "does not exist
yet", RunQuery with filters and a limit, ListCollectionIds) and refuses the rest. Filters work on
the values of the protocol and share no code with `toolgate.ports.filters`, so that each checks the
other.
"""

import math
import operator as operators
import re
from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import Any, Self, TypeAlias

import grpc
import grpc.aio
from google.cloud.firestore_v1.types import firestore, query

Message: TypeAlias = Any

# The message types are made at run time; a type checker cannot see into them.
messages: Any = firestore

MAX_DISJUNCTIONS = 30
MAX_DOCUMENT_BYTES = 1024 * 1024
RESERVED = re.compile(r"__.*__", re.DOTALL)
VECTOR_MARK = "__type__"
SEGMENT = re.compile(r"`((?:[^`\\]|\\.)+)`|([_a-zA-Z][_a-zA-Z0-9]*)", re.DOTALL)

Comparison = query.StructuredQuery.FieldFilter.Operator
Unary = query.StructuredQuery.UnaryFilter.Operator
Composite = query.StructuredQuery.CompositeFilter.Operator

WITHIN_A_TYPE: dict[int, Callable[[Any, Any], bool]] = {
    Comparison.EQUAL: operators.eq,
    Comparison.LESS_THAN: operators.lt,
    Comparison.LESS_THAN_OR_EQUAL: operators.le,
    Comparison.GREATER_THAN: operators.gt,
    Comparison.GREATER_THAN_OR_EQUAL: operators.ge,
}

TYPES = (
    "null_value",
    "boolean_value",
    "number",
    "timestamp_value",
    "string_value",
    "bytes_value",
    "reference_value",
    "geo_point_value",
    "array_value",
    "map_value",
)
NULL = (0, 0)
NAN = (TYPES.index("number"), (0, 0))


class Refusal(Exception):
    """A request that ends with a gRPC status."""

    def __init__(self, status: grpc.StatusCode, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def invalid(text: str) -> Refusal:
    """The refusal of a request that is not well formed."""
    return Refusal(grpc.StatusCode.INVALID_ARGUMENT, text)


class WireServer:
    """A server on a free port of this machine, for as long as the block lasts."""

    def __init__(self) -> None:
        self.documents: dict[str, Message] = {}
        self.refusal: Refusal | None = None
        """When set, the answer to every request."""
        self.calls: list[str] = []
        self.host = ""
        self._server: Any = None

    async def __aenter__(self) -> Self:
        self._server = grpc.aio.server()
        self._server.add_generic_rpc_handlers((self._handlers(),))
        self.host = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        await self._server.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._server.stop(None)

    def _handlers(self) -> Any:
        return grpc.method_handlers_generic_handler(
            "google.firestore.v1.Firestore",
            {
                "BatchGetDocuments": self._streaming(
                    self._batch_get,
                    messages.BatchGetDocumentsRequest,
                    messages.BatchGetDocumentsResponse,
                ),
                "RunQuery": self._streaming(
                    self._run_query, messages.RunQueryRequest, messages.RunQueryResponse
                ),
                "ListCollectionIds": grpc.unary_unary_rpc_method_handler(
                    self._answer_list_collections,
                    request_deserializer=messages.ListCollectionIdsRequest.pb().FromString,
                    response_serializer=messages.ListCollectionIdsResponse.pb().SerializeToString,
                ),
                "Commit": grpc.unary_unary_rpc_method_handler(
                    self._answer_commit,
                    request_deserializer=messages.CommitRequest.pb().FromString,
                    response_serializer=messages.CommitResponse.pb().SerializeToString,
                ),
            },
        )

    def _streaming(
        self, answers: Callable[[Message], Iterable[Message]], request: Any, response: Any
    ) -> Any:
        async def stream(asked: Message, context: Any) -> AsyncIterator[Message]:
            for one in await self._guarded(answers, asked, context):
                yield one

        return grpc.unary_stream_rpc_method_handler(
            stream,
            request_deserializer=request.pb().FromString,
            response_serializer=response.pb().SerializeToString,
        )

    async def _answer_commit(self, asked: Message, context: Any) -> Message:
        return await self._guarded(self._commit, asked, context)

    async def _answer_list_collections(self, asked: Message, context: Any) -> Message:
        return await self._guarded(self._list_collections, asked, context)

    async def _guarded(self, answer: Callable[[Message], Any], asked: Message, context: Any) -> Any:
        self.calls.append(type(asked).__name__)
        try:
            if self.refusal is not None:
                raise self.refusal
            return answer(asked)
        except Refusal as refusal:
            await context.abort(refusal.status, refusal.text)

    def _batch_get(self, asked: Message) -> list[Message]:
        answers: list[Message] = []
        for name in asked.documents:
            check_name(name)
            answer = messages.BatchGetDocumentsResponse.pb()()
            answer.read_time.GetCurrentTime()
            if name in self.documents:
                answer.found.CopyFrom(self.documents[name])
            else:
                answer.missing = name
            answers.append(answer)
        return answers

    def _commit(self, asked: Message) -> Message:
        """All writes or none: nothing is stored before every write is checked."""
        answer = messages.CommitResponse.pb()()
        answer.commit_time.GetCurrentTime()
        new: dict[str, Message] = {}
        for write in asked.writes:
            document = write.update
            self._check_write(write)
            document.create_time.CopyFrom(answer.commit_time)
            document.update_time.CopyFrom(answer.commit_time)
            new[document.name] = document
            answer.write_results.add().update_time.CopyFrom(answer.commit_time)
        self.documents.update(new)
        return answer

    def _check_write(self, write: Message) -> None:
        precondition = write.current_document
        if write.WhichOneof("operation") != "update" or not precondition.HasField("exists"):
            raise Refusal(grpc.StatusCode.UNIMPLEMENTED, "only documents can be created")
        check_name(write.update.name)
        check_fields(write.update.fields)
        if write.update.ByteSize() > MAX_DOCUMENT_BYTES:
            raise invalid("Document cannot be written because its size exceeds 1,048,576 bytes.")
        if write.update.name in self.documents:
            text = f"Document already exists: {write.update.name}"
            raise Refusal(grpc.StatusCode.ALREADY_EXISTS, text)

    def _run_query(self, asked: Message) -> list[Message]:
        asked_for = asked.structured_query
        sources = asked_for.from_
        if asked_for.order_by or len(sources) != 1:
            raise Refusal(grpc.StatusCode.UNIMPLEMENTED, "one collection, in its own order")
        prefix = f"{asked.parent}/{sources[0].collection_id}/"
        conditions = flat(asked_for.where)
        found = [
            document
            for name, document in self.documents.items()
            if name.startswith(prefix)
            and "/" not in name.removeprefix(prefix)
            and all(passes(document.fields, one) for one in conditions)
        ]
        found.sort(key=lambda document: place(document, conditions))
        limit = asked_for.limit.value if asked_for.HasField("limit") else None
        return [self._query_answer(document) for document in found[:limit]]

    def _list_collections(self, asked: Message) -> Message:
        names = (name.removeprefix(f"{asked.parent}/") for name in self.documents)
        answer = messages.ListCollectionIdsResponse.pb()()
        answer.collection_ids.extend({name.partition("/")[0] for name in names})
        return answer

    def _query_answer(self, document: Message) -> Message:
        answer = messages.RunQueryResponse.pb()()
        answer.document.CopyFrom(document)
        answer.read_time.GetCurrentTime()
        return answer


def check_name(name: str) -> None:
    """Refuse a document name with a segment Firestore does not allow."""
    segments = name.split("/")[5:]
    if not segments or len(segments) % 2:
        raise invalid(f"Document name {name!r} has an odd number of segments.")
    for segment in segments:
        if segment in ("", ".", "..") or RESERVED.fullmatch(segment):
            raise invalid(f"Resource id {segment!r} is invalid.")


def check_fields(fields: Message) -> None:
    """Refuse field names and values Firestore does not store."""
    for name, value in fields.items():
        if not name or (RESERVED.fullmatch(name) and name != VECTOR_MARK):
            raise invalid(f"Field name {name!r} is invalid.")
        check_value(value)


def check_value(value: Message, *, inside_array: bool = False) -> None:
    """Refuse an array directly inside an array."""
    kind = value.WhichOneof("value_type")
    if kind == "array_value":
        if inside_array:
            raise invalid("Property array contains an invalid nested entity.")
        for one in value.array_value.values:
            check_value(one, inside_array=True)
    elif kind == "map_value":
        check_fields(value.map_value.fields)


def flat(where: Message) -> list[Message]:
    """The conditions of a filter that joins them all by AND."""
    match where.WhichOneof("filter_type"):
        case None:
            return []
        case "composite_filter":
            if where.composite_filter.op != Composite.AND:
                raise Refusal(grpc.StatusCode.UNIMPLEMENTED, "only AND")
            return [one for inner in where.composite_filter.filters for one in flat(inner)]
        case kind:
            return [getattr(where, kind)]


def segments_of(path: str) -> list[str]:
    """The names in a field path, without their quotes."""
    names: list[str] = []
    at = 0
    while match := SEGMENT.match(path, at):
        quoted, plain = match.groups()
        names.append(plain or re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
        at = match.end() + 1
        if path[match.end() : at] != ".":
            break
    if at <= len(path):
        raise invalid(f"Invalid property path {path!r}.")
    return names


def value_at(fields: Message, path: str) -> Message | None:
    """The value at a field path, or None where there is none."""
    *above, last = segments_of(path)
    for name in above:
        if name not in fields or fields[name].WhichOneof("value_type") != "map_value":
            return None
        fields = fields[name].map_value.fields
    return fields.get(last)


def key(value: Message) -> tuple[int, Any]:
    """A Python value that compares as Firestore compares: by type, then by content."""
    kind: str = value.WhichOneof("value_type")
    content = getattr(value, kind)
    if kind in ("integer_value", "double_value"):
        return NAN if math.isnan(content) else (NAN[0], (1, content))
    return TYPES.index(kind), _content_key(kind, content)


def _content_key(kind: str, content: Any) -> Any:
    match kind:
        case "string_value":
            return content.encode()
        case "timestamp_value":
            return content.seconds, content.nanos
        case "geo_point_value":
            return content.latitude, content.longitude
        case "array_value":
            return tuple(key(one) for one in content.values)
        case "map_value":
            return tuple(sorted((name.encode(), key(one)) for name, one in content.fields.items()))
        case _:  # null is stored as 0; the others compare as they are
            return content


def passes(fields: Message, condition: Message) -> bool:
    """Whether a document passes one condition."""
    found = value_at(fields, condition.field.field_path)
    if found is None:
        return False
    if "value" not in condition.DESCRIPTOR.fields_by_name:
        return passes_unary(key(found), condition.op)
    if condition.op == Comparison.ARRAY_CONTAINS:
        return contains(found, key(condition.value))
    if condition.op == Comparison.IN:
        return is_in(key(found), condition.value.array_value.values)
    return passes_comparison(key(found), condition.op, key(condition.value))


def passes_unary(found: tuple[int, Any], operator: int) -> bool:
    """The conditions about null and NaN, which have no value to compare with."""
    match operator:
        case Unary.IS_NULL:
            return found == NULL
        case Unary.IS_NOT_NULL:
            return found != NULL
        case Unary.IS_NAN:
            return found == NAN
        case _:
            return found not in (NULL, NAN)


def contains(found: Message, wanted: tuple[int, Any]) -> bool:
    """Whether an array holds a value; null is never found."""
    return (
        found.WhichOneof("value_type") == "array_value"
        and wanted != NULL
        and any(key(one) == wanted for one in found.array_value.values)
    )


def is_in(found: tuple[int, Any], values: Message) -> bool:
    """Whether a value is one of at most thirty; null is none of them."""
    if not 0 < len(values) <= MAX_DISJUNCTIONS:
        raise invalid("'IN' supports from 1 to 30 comparison values.")
    return found != NULL and any(key(one) == found for one in values)


def passes_comparison(found: tuple[int, Any], operator: int, wanted: tuple[int, Any]) -> bool:
    """Comparisons hold within one type, save for "not equal"; null is unlike nothing."""
    if operator == Comparison.NOT_EQUAL:
        return found not in (NULL, wanted)
    if operator not in WITHIN_A_TYPE:
        raise Refusal(grpc.StatusCode.UNIMPLEMENTED, f"operator {operator}")
    return found[0] == wanted[0] and WITHIN_A_TYPE[operator](found, wanted)


def place(document: Message, conditions: list[Message]) -> tuple[Any, ...]:
    """Where a document comes: by the fields of inequalities, in their order, then by name."""
    paths = sorted({one.field.field_path for one in conditions if is_inequality(one)})
    values = [key(found) for path in paths if (found := value_at(document.fields, path))]
    return (*values, [segment.encode() for segment in document.name.split("/")])


def is_inequality(condition: Message) -> bool:
    """Whether a condition decides the order of the answer."""
    if "value" not in condition.DESCRIPTOR.fields_by_name:
        return condition.op in (Unary.IS_NOT_NULL, Unary.IS_NOT_NAN)
    return condition.op not in (Comparison.EQUAL, Comparison.IN, Comparison.ARRAY_CONTAINS)

"""The server: requests in, responses or a status out."""

from collections.abc import AsyncIterator, Callable, Iterable
from types import TracebackType
from typing import Any, Self

import grpc
import grpc.aio
from google.cloud.firestore_v1.types import firestore
from google.protobuf import empty_pb2
from tests.firestore.wire_server.commits import check_name, state_after
from tests.firestore.wire_server.queries import found
from tests.firestore.wire_server.refusals import Message, Refusal
from tests.firestore.wire_server.transactions import Transactions

messages: Any = firestore
MILLISECOND = 1_000_000


class WireServer:
    """A server on a free port of this machine, for as long as the block lasts."""

    def __init__(self) -> None:
        self.documents: dict[str, Message] = {}
        self.refusal: Refusal | None = None
        """When set, the answer to every request."""
        self.next_refusals: dict[str, list[Refusal]] = {}
        """The answers to the next requests, by their kind."""
        self.calls: list[str] = []
        self.host = ""
        self.transactions = Transactions()
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
        handlers = {
            "BatchGetDocuments": self._streaming(self._batch_get, "BatchGetDocuments"),
            "RunQuery": self._streaming(self._run_query, "RunQuery"),
            "ListCollectionIds": self._single(self._list_collections, "ListCollectionIds"),
            "BeginTransaction": self._single(self._begin, "BeginTransaction"),
            "Commit": self._single(self._commit, "Commit"),
            "Rollback": grpc.unary_unary_rpc_method_handler(
                self._guarded(self._roll_back),
                request_deserializer=messages.RollbackRequest.pb().FromString,
                response_serializer=empty_pb2.Empty.SerializeToString,
            ),
        }
        return grpc.method_handlers_generic_handler("google.firestore.v1.Firestore", handlers)

    def _streaming(self, answers: Callable[[Message], Iterable[Message]], method: str) -> Any:
        guarded = self._guarded(answers)

        async def stream(asked: Message, context: Any) -> AsyncIterator[Message]:
            for one in await guarded(asked, context):
                yield one

        return grpc.unary_stream_rpc_method_handler(
            stream,
            request_deserializer=getattr(messages, f"{method}Request").pb().FromString,
            response_serializer=getattr(messages, f"{method}Response").pb().SerializeToString,
        )

    def _single(self, answer: Callable[[Message], Message], method: str) -> Any:
        return grpc.unary_unary_rpc_method_handler(
            self._guarded(answer),
            request_deserializer=getattr(messages, f"{method}Request").pb().FromString,
            response_serializer=getattr(messages, f"{method}Response").pb().SerializeToString,
        )

    def _guarded(self, answer: Callable[[Message], Any]) -> Any:
        async def guarded(asked: Message, context: Any) -> Any:
            kind = type(asked).__name__
            self.calls.append(kind)
            try:
                if self.refusal is not None:
                    raise self.refusal
                if waiting := self.next_refusals.get(kind):
                    raise waiting.pop(0)
                return answer(asked)
            except Refusal as refusal:
                await context.abort(refusal.status, refusal.text)

        return guarded

    def _batch_get(self, asked: Message) -> list[Message]:
        return [self._got(name, asked.transaction) for name in asked.documents]

    def _got(self, name: str, transaction: bytes) -> Message:
        check_name(name)
        self.transactions.note(transaction, lambda: self.documents.get(name))
        answer = messages.BatchGetDocumentsResponse.pb()()
        answer.read_time.GetCurrentTime()
        if name in self.documents:
            answer.found.CopyFrom(self.documents[name])
        else:
            answer.missing = name
        return answer

    def _run_query(self, asked: Message) -> list[Message]:
        def run() -> list[Message]:
            return found(self.documents.values(), asked.parent, asked.structured_query)

        self.transactions.note(asked.transaction, run)
        return [self._query_answer(document) for document in run()]

    def _query_answer(self, document: Message) -> Message:
        answer = messages.RunQueryResponse.pb()()
        answer.document.CopyFrom(document)
        answer.read_time.GetCurrentTime()
        return answer

    def _list_collections(self, asked: Message) -> Message:
        above = f"{asked.parent}/"
        below = (name.removeprefix(above) for name in self.documents if name.startswith(above))
        answer = messages.ListCollectionIdsResponse.pb()()
        answer.collection_ids.extend({name.partition("/")[0] for name in below})
        return answer

    def _begin(self, asked: Message) -> Message:
        return messages.BeginTransactionResponse.pb()(
            transaction=self.transactions.begin(asked.options)
        )

    def _roll_back(self, asked: Message) -> Message:
        self.transactions.end(asked.transaction)
        return empty_pb2.Empty()

    def _commit(self, asked: Message) -> Message:
        """All writes or none, all at one time."""
        self.transactions.commit(asked.transaction, len(asked.writes))
        answer = messages.CommitResponse.pb()()
        answer.commit_time.GetCurrentTime()
        answer.commit_time.nanos -= answer.commit_time.nanos % MILLISECOND
        self.documents = state_after(self.documents, list(asked.writes), answer.commit_time)
        for _ in asked.writes:
            answer.write_results.add().update_time.CopyFrom(answer.commit_time)
        return answer

"""A tree in a Realtime Database.

A write is on its way at once: it cannot wait for the gate's transaction, nor be rolled back with
it. Several writes are sent as one request, which the database does as a whole.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, cast

import orjson

from toolgate.adapters.rtdb.events import TreeEvent, stream
from toolgate.adapters.rtdb.rest import CHANGED, Rest, Token, read_json, stored_node
from toolgate.db.transactions import Transaction
from toolgate.outbound.client import Outbound
from toolgate.ports.documents import Json, StoreContended
from toolgate.ports.tree import Bound, Increment, ServerTime, SetValue, TreeQuery, TreeWrite
from toolgate.ports.tree_order import key_rank, selected
from toolgate.ports.tree_queries import BOUNDS, check_query, value_path
from toolgate.ports.tree_rules import Node, at, common_path, json_of, path_of
from toolgate.ports.tree_writes import changes_of, checked_changes

CONTENDED = "Others change the same value in Realtime Database at the same time. Try again later."
ATTEMPTS = 25
"""As many as Firebase's own clients make."""
PARAMETERS = {
    "start_at": "startAt",
    "start_after": "startAfter",
    "end_at": "endAt",
    "end_before": "endBefore",
    "equal_to": "equalTo",
}
SILENT = {"print": "silent"}
CHECKED = ("toolgate", "check")
"""A path that is read to see whether the database answers."""


class RealtimeDatabase:
    """The tree of one database."""

    joins_transaction = False

    def __init__(
        self,
        outbound: Outbound,
        url: str,
        *,
        namespace: str | None = None,
        token: Token | None = None,
        timeout_seconds: float = 10.0,
    ) -> None:
        self._rest = Rest(
            outbound=outbound, url=url, namespace=namespace, token=token, seconds=timeout_seconds
        )

    async def get(
        self, path: str, query: TreeQuery | None = None, *, shallow: bool = False
    ) -> Json:
        """Return what is at a path, its keys, or those of its children that pass."""
        keys, parameters = path_of(path), {}
        if query is not None:
            check_query(query, shallow=shallow)
            parameters = _parameters(query)
        elif shallow:
            parameters = {"shallow": "true"}
        response = await self._rest.send("GET", keys, parameters)
        node = stored_node(read_json(response.body))
        if query is not None:
            return _in_order(node, query)
        if shallow and isinstance(node, dict):
            return dict.fromkeys(sorted(cast("dict[str, Node]", node), key=key_rank), True)
        return json_of(node)

    async def write(self, tx: Transaction, *writes: TreeWrite) -> None:
        """Store these at once, whatever becomes of the transaction."""
        changes = await checked_changes(writes)
        if len(changes) == 1:
            [(path, node)] = changes.items()
            method = "DELETE" if node is None else "PUT"
            await self._rest.send(method, path, SILENT, body=_sent(node))
        elif changes:
            above = common_path(changes)
            body = {"/".join(path[len(above) :]): _sent(node) for path, node in changes.items()}
            await self._rest.send("PATCH", above, SILENT, body=body)

    async def transact(self, tx: Transaction, path: str, work: Callable[[Json], Json]) -> Json:
        """Store what the work makes of the value, if it is still that one; else begin anew."""
        keys = path_of(path)
        response = await self._rest.send("GET", keys, headers={"X-Firebase-ETag": "true"})
        for _ in range(ATTEMPTS):
            before = json_of(stored_node(read_json(response.body)))
            [node] = changes_of([SetValue(path, work(before))]).values()
            match = {"if-match": response.headers.get("etag", "")}
            response = await self._rest.send(
                "PUT", keys, headers=match, body=_sent(node), allowed=(CHANGED,)
            )
            if response.status != CHANGED:
                return json_of(stored_node(read_json(response.body)))
        raise StoreContended(CONTENDED)

    def events(self, path: str) -> AsyncGenerator[TreeEvent]:
        """What is at a path, and then each change of it, until the stream ends."""
        return stream(self._rest, path_of(path))

    async def check(self) -> None:
        """Raise `StoreUnavailable` unless the database answers."""
        await self._rest.send("GET", CHECKED)

    async def close(self) -> None:
        """Connections are closed by the owner of the way out."""


def _parameters(query: TreeQuery) -> dict[str, str]:
    parameters = {"orderBy": _quoted(query.order_by.strip("/"))}
    for name in BOUNDS:
        bound: Bound | None = getattr(query, name)
        if bound is not None:
            key = [] if bound.key is None else [_quoted(bound.key)]
            parameters[PARAMETERS[name]] = ",".join([_quoted(bound.value), *key])
    if query.limit_to_first is not None:
        parameters["limitToFirst"] = str(query.limit_to_first)
    if query.limit_to_last is not None:
        parameters["limitToLast"] = str(query.limit_to_last)
    return parameters


def _quoted(value: Json) -> str:
    return orjson.dumps(value).decode()


def _in_order(node: Node, query: TreeQuery) -> Json:
    """Children in the query's order: in the JSON that is sent they have none."""
    children = cast("dict[str, Node]", node) if isinstance(node, dict) else {}
    value = value_path(query)
    keys = selected([(key, at(child, value)) for key, child in children.items()], query)
    return {key: json_of(children[key]) for key in keys}


def _sent(node: Node) -> Json:
    """A node as it is sent, server values in the words of the protocol."""
    match node:
        case dict():
            children = cast("Mapping[str, Any]", node)
            return {key: _sent(child) for key, child in children.items()}
        case ServerTime():
            return {".sv": "timestamp"}
        case Increment():
            return {".sv": {"increment": node.by}}
        case _:
            return node

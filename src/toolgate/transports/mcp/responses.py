"""Responses to plain requests, as bytes: the same on every transport, and as the SDK has them."""

from importlib.metadata import version
from typing import Any

import orjson

from toolgate.gate.errors import UnknownTool
from toolgate.gate.outcomes import Outcome
from toolgate.gate.pipeline import Gate
from toolgate.gate.principal import Principal
from toolgate.transports.jsonrpc import INVALID_PARAMS, failure_line
from toolgate.transports.mcp.listing import MAX_DIFF_BYTES, NAME, contents_of, listed_tool
from toolgate.transports.mcp.plain import DRY_RUN, META, Plain


class Responses:
    """Words a gate's outcomes; remembers each list.

    A list depends on the shape of its caller, the era, and the epoch of the catalogue: another one
    begins when tools have changed, or what is switched off. Rules and settings stay what they are.
    """

    def __init__(self, gate: Gate, *, underscore_names: bool) -> None:
        self._gate = gate
        self._underscores = underscore_names
        self._epoch = gate.catalogue.epoch
        self._lists: dict[tuple[Any, ...], bytes] = {}
        self._meta = {f"{META}serverInfo": {"name": NAME, "version": version("toolgate")}}

    def to_call(self, plain: Plain, outcome: Outcome) -> bytes:
        """The answer to a `tools/call`."""
        if isinstance(outcome.error, UnknownTool):
            return failure_line(plain.id, INVALID_PARAMS, outcome.error.message)
        text = outcome.raw.decode() if outcome.sentence is None else outcome.sentence
        result: dict[str, Any] = {
            "content": [{"type": "text", "text": text}],
            "isError": outcome.error is not None,
        }
        # A failure does not fit the declared output schema, which clients check; older clients
        # take nothing but objects.
        if outcome.error is None and isinstance(outcome.body, dict):
            result["structuredContent"] = orjson.Fragment(outcome.raw)
        if outcome.attached is not None:
            result["content"].extend(contents_of(outcome.attached))
        if plain.modern:
            result["resultType"] = "complete"
            result["_meta"] = self._meta
        if outcome.diff is not None:
            told = orjson.Fragment(outcome.diff.json(MAX_DIFF_BYTES))
            result["_meta"] = result.get("_meta", {}) | {DRY_RUN: told}
        return orjson.dumps({"jsonrpc": "2.0", "id": plain.id, "result": result})

    def to_list(self, plain: Plain, principal: Principal) -> bytes:
        """The answer to a `tools/list`, serialised once for each shape of caller."""
        if self._epoch != self._gate.catalogue.epoch:
            self._epoch = self._gate.catalogue.epoch
            self._lists.clear()
        key = (principal.shape, plain.modern)
        listed = self._lists.get(key)
        if listed is None:
            listed = self._lists[key] = self._list(principal, plain.modern)
        return orjson.dumps({"jsonrpc": "2.0", "id": plain.id, "result": orjson.Fragment(listed)})

    def _list(self, principal: Principal, modern: bool) -> bytes:
        visible = self._gate.visible(principal)
        result: dict[str, Any] = {
            "tools": [listed_tool(tool, self._underscores) for tool in visible]
        }
        if modern:
            result |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
            result["_meta"] = self._meta
        return orjson.dumps(result)

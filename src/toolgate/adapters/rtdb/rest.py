"""Requests to a Realtime Database, and what its refusals mean."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote, urlencode, urlsplit

import orjson

from toolgate.outbound.client import AddressPolicy, Outbound
from toolgate.outbound.responses import (
    FetchedResponse,
    FetchFailed,
    ResponseLimits,
    ResponseTooLarge,
)
from toolgate.ports.documents import Json, StoreDenied, StoreExhausted, StoreUnavailable
from toolgate.ports.tree_rules import Node, Path

NO_ANSWER = "Realtime Database does not answer. Try again later."
NO_PERMISSION = (
    "Realtime Database denies permission. Give the service account the role "
    "Firebase Realtime Database Admin (roles/firebasedatabase.admin)."
)
EXHAUSTED = "The quota of Realtime Database is used up. Try again later, or have it raised."
NO_INDEX = "Realtime Database needs an index for this query; add .indexOn to its rules"
MAX_REASON = 300
"""Characters of a refusal in its own words."""
OK, NO_CONTENT, BAD_REQUEST, TOO_MANY, OUR_FAULT, THEIR_FAULT = 200, 204, 400, 429, 400, 500
DENIED = (401, 403)
NOT_FOUND = 404
CHANGED = 412
"""The value is no longer the one of the ETag that the request names."""

Token = Callable[[], Awaitable[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Where a database is, and how to ask it."""

    outbound: Outbound
    url: str
    namespace: str | None = None
    """Of a server with several databases, as the emulator is: which of them."""
    token: Token | None = None
    """Gives an access token; without, requests carry none."""
    seconds: float = 10.0
    most_bytes: int = 32 * 1024 * 1024

    def address(self, path: Path, parameters: Mapping[str, str]) -> str:
        """The URL of a path."""
        if self.namespace is not None:
            parameters = {**parameters, "ns": self.namespace}
        keys = "/".join(quote(key, safe="") for key in path)
        asked = f"?{urlencode(parameters, quote_via=quote)}" if parameters else ""
        return f"{self.url.rstrip('/')}/{keys}.json{asked}"

    async def authorization(self) -> dict[str, str]:
        """The header with the access token."""
        return {"Authorization": f"Bearer {await self.token()}"} if self.token else {}

    async def send(
        self,
        method: str,
        path: Path,
        parameters: Mapping[str, str] | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: Json = None,
        allowed: tuple[int, ...] = (),
    ) -> FetchedResponse:
        """The response to one request; `StoreUnavailable` for any status but 2xx and `allowed`."""
        sent = {"Accept": "application/json", **(headers or {}), **await self.authorization()}
        content = None
        if method in ("PUT", "PATCH"):
            sent["Content-Type"] = "application/json"
            content = orjson.dumps(body)
        limits = ResponseLimits(seconds=self.seconds, most_bytes=self.most_bytes, statuses=None)
        try:
            response = await self.outbound.fetch(
                self.address(path, parameters or {}),
                limits,
                address_policy=AddressPolicy.PROXIED,
                method=method,
                headers=sent,
                content=content,
            )
        except ResponseTooLarge as problem:
            raise StoreUnavailable(
                f"Realtime Database sent more than {problem.most_bytes:,} bytes. "
                "Read a path further below, with shallow, or with a limit."
            ) from problem
        except FetchFailed as problem:
            raise StoreUnavailable(NO_ANSWER) from problem
        if response.status not in (OK, NO_CONTENT, *allowed):
            raise refusal(self.url, response.status, response.body)
        return response


def refusal(url: str, status: int, body: bytes) -> StoreUnavailable:
    """What a status other than success means."""
    reason = _reason(body)
    match status:
        case _ if status in DENIED:
            return StoreDenied(f"{NO_PERMISSION} It says: {reason}" if reason else NO_PERMISSION)
        case _ if status == TOO_MANY:
            return StoreExhausted(EXHAUSTED)
        case _ if status == NOT_FOUND:
            host = urlsplit(url).hostname
            return StoreUnavailable(f"There is no Realtime Database at {host}. Check its URL.")
        case _ if status == BAD_REQUEST and "index not defined" in reason.lower():
            return StoreUnavailable(f"{NO_INDEX}. It says: {reason}")
        case _ if OUR_FAULT <= status < THEIR_FAULT:
            return StoreUnavailable(
                f"Realtime Database refused the request: {reason or f'status {status}'}"
            )
        case _:
            return StoreUnavailable(NO_ANSWER)


def read_json(body: bytes) -> Json:
    """What a body says."""
    try:
        return orjson.loads(body) if body else None
    except orjson.JSONDecodeError as problem:
        raise StoreUnavailable("Realtime Database did not send valid JSON.") from problem


def stored_node(value: Json) -> Node:
    """What the database holds as a node; it may hold more than may be written here."""
    match value:
        case list():
            values = cast("list[Json]", value)
            return stored_node({str(index): one for index, one in enumerate(values)})
        case dict():
            fields = cast("dict[str, Json]", value)
            children = {key: stored_node(one) for key, one in fields.items()}
            return {key: one for key, one in children.items() if one is not None} or None
        case _:
            return value


def _reason(body: bytes) -> str:
    """A refusal in the server's words."""
    try:
        told: Any = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    reason = cast("dict[str, Any]", told).get("error") if isinstance(told, dict) else None
    return reason[:MAX_REASON] if isinstance(reason, str) else ""

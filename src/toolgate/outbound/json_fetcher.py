"""JSON objects from other servers."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

import orjson

from toolgate.outbound.client import AddressPolicy, Outbound
from toolgate.outbound.responses import FetchedResponse, FetchFailed, ResponseLimits

JSON_TYPES = ("application/json", "application/*+json")
ACCEPT = {"Accept": "application/json"}
FORM = {**ACCEPT, "Content-Type": "application/x-www-form-urlencoded"}
OK, ANSWERS = (200,), (200, 400, 401, 403)


@dataclass(frozen=True, slots=True)
class JsonObject:
    """A JSON object from elsewhere."""

    status: int
    body: dict[str, Any]
    fresh_seconds: float | None
    """How long it may be kept; 0 for not at all, None when the server does not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFetcher:
    """Fetches JSON objects; redirects are not followed."""

    outbound: Outbound
    address_policy: AddressPolicy = AddressPolicy.PUBLIC
    seconds: float = 5.0
    most_bytes: int = 64 * 1024

    async def get(self, url: str, *, bearer: str | None = None) -> JsonObject:
        """The JSON object at an address; raise `FetchFailed` unless it may be and can be had."""
        headers = {**ACCEPT, "Authorization": f"Bearer {bearer}"} if bearer else ACCEPT
        return await self._fetch(url, OK, headers=headers)

    async def post(
        self, url: str, form: Mapping[str, str], *, basic: tuple[str, str] | None = None
    ) -> JsonObject:
        """The answer to a form, also when it is a refusal in JSON."""
        headers = FORM
        if basic:
            credentials = base64.b64encode(":".join(basic).encode()).decode()
            headers = {**FORM, "Authorization": f"Basic {credentials}"}
        content = urlencode(form).encode()
        return await self._fetch(url, ANSWERS, method="POST", headers=headers, content=content)

    async def _fetch(self, url: str, statuses: tuple[int, ...], **request: Any) -> JsonObject:
        limits = ResponseLimits(
            seconds=self.seconds,
            most_bytes=self.most_bytes,
            statuses=statuses,
            content_types=JSON_TYPES,
        )
        response = await self.outbound.fetch(
            url, limits, address_policy=self.address_policy, **request
        )
        host = urlsplit(response.url).hostname
        try:
            body: Any = orjson.loads(response.body)
        except orjson.JSONDecodeError:
            raise FetchFailed(f"{host} did not send valid JSON.") from None
        if not isinstance(body, dict):
            raise FetchFailed(f"{host} did not send a JSON object.")
        return JsonObject(response.status, cast("dict[str, Any]", body), _fresh_seconds(response))


def _fresh_seconds(response: FetchedResponse) -> float | None:
    directives: dict[str, str] = {}
    for directive in response.headers.get("cache-control", "").lower().split(","):
        name, _, value = directive.partition("=")
        directives[name.strip()] = value.strip().strip('"')
    if "no-store" in directives or "no-cache" in directives:
        return 0
    most = _count(directives.get("max-age", ""))
    return None if most is None else max(0, most - (_count(response.headers.get("age", "")) or 0))


def _count(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 10 else None

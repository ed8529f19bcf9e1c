"""Requests to GitHub's REST API, and what its refusals mean."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import orjson

from toolgate.outbound.client import Outbound
from toolgate.outbound.hops import AddressPolicy
from toolgate.outbound.responses import (
    FetchedResponse,
    FetchFailed,
    ResponseLimits,
    ResponseTooLarge,
)
from toolgate.ports.forge import (
    ForgeError,
    ForgeLimited,
    ForgeRefused,
    ForgeUnavailable,
    RepositoryMissing,
)

JSON = "application/vnd.github+json"
RAW = "application/vnd.github.raw+json"
API_VERSION = "2022-11-28"
MAX_REASON = 200
UNAVAILABLE = "GitHub cannot be reached, or fails. Try again later."
UNAUTHENTICATED = "GitHub needs a token: set GITHUB_TOKEN (setting github.token)."
REVOKED = "GitHub refuses the token (setting github.token). Make a new one."
Json = dict[str, Any]


class NoAnswer(ForgeUnavailable):
    """The request may have arrived or not."""


@dataclass(frozen=True, slots=True)
class GitHubApi:
    """One GitHub, as one account."""

    outbound: Outbound
    url: str = "https://api.github.com"
    token: str | None = field(default=None, repr=False)
    seconds: float = 15.0
    most_bytes: int = 32 * 1024 * 1024

    async def send(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        *,
        accept: str = JSON,
        allowed: tuple[int, ...] = (),
        most_bytes: int | None = None,
    ) -> FetchedResponse:
        """The response to one request; raises for any status but 2xx and `allowed`."""
        headers = {"Accept": accept, "X-GitHub-Api-Version": API_VERSION}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers["Content-Type"] = "application/json"
        limits = ResponseLimits(
            seconds=self.seconds, most_bytes=most_bytes or self.most_bytes, statuses=None
        )
        try:
            response = await self.outbound.fetch(
                f"{self.url.rstrip('/')}{path}",
                limits,
                address_policy=AddressPolicy.PROXIED,
                method=method,
                headers=headers,
                content=None if body is None else orjson.dumps(body),
            )
        except ResponseTooLarge as problem:
            raise ForgeError(f"GitHub sent more than {problem.most_bytes:,} bytes.") from problem
        except FetchFailed as problem:
            raise NoAnswer(UNAVAILABLE) from problem
        if response.status // 100 != 2 and response.status not in allowed:
            raise refusal(response, with_token=bool(self.token))
        return response


def read_json(response: FetchedResponse) -> Any:
    """What a body says."""
    try:
        return orjson.loads(response.body)
    except orjson.JSONDecodeError as problem:
        raise ForgeUnavailable("GitHub did not send valid JSON. Try again later.") from problem


def read_object(response: FetchedResponse) -> Json:
    """The same, of an object."""
    body = read_json(response)
    if not isinstance(body, dict):
        raise ForgeUnavailable("GitHub did not send a JSON object. Try again later.")
    return cast("Json", body)


def text_at(body: Any, *keys: str) -> str:
    """A text inside of an object; raises where there is none."""
    for key in keys:
        body = cast("Json", body).get(key) if isinstance(body, dict) else None
    if not isinstance(body, str) or not body:
        raise ForgeUnavailable(f"GitHub's answer lacks {'.'.join(keys)}. Try again later.")
    return body


def refusal(response: FetchedResponse, *, with_token: bool) -> ForgeError:
    """What a status other than success means."""
    reason = reason_of(response)
    match response.status:
        case _ if _is_limited(response, reason):
            return ForgeLimited(f"GitHub's rate limit is used up. Try again {_when(response)}.")
        case 401:
            return ForgeRefused(REVOKED if with_token else UNAUTHENTICATED)
        case 403:
            return ForgeRefused(
                f"GitHub does not allow this with the token it got{_says(reason)} Give the token "
                "write access to the repository's contents."
            )
        case 404:
            return RepositoryMissing(
                "GitHub has no such repository or branch, or the token may not see it. Check "
                "posts.url, posts.branch and github.token."
            )
        case status:
            failed = NoAnswer(UNAVAILABLE)
            refused = ForgeError(f"GitHub refused the request, status {status}{_says(reason)}")
            return failed if status >= 500 else refused


def reason_of(response: FetchedResponse) -> str:
    """A refusal in GitHub's words."""
    try:
        told: Any = orjson.loads(response.body)
    except orjson.JSONDecodeError:
        return ""
    reason = cast("Json", told).get("message") if isinstance(told, dict) else None
    return reason[:MAX_REASON] if isinstance(reason, str) and reason.isprintable() else ""


def _says(reason: str) -> str:
    return f": {reason.rstrip('.')}." if reason else "."


def _is_limited(response: FetchedResponse, reason: str) -> bool:
    """Whether it is the primary limit (nothing remains) or a secondary one (it says so)."""
    if response.status == 429:
        return True
    headers = response.headers
    return response.status == 403 and (
        headers.get("x-ratelimit-remaining") == "0"
        or "retry-after" in headers
        or "rate limit" in reason.lower()
    )


def _when(response: FetchedResponse) -> str:
    headers: Mapping[str, str] = response.headers
    seconds = headers.get("retry-after", "")
    if seconds.isascii() and seconds.isdecimal():
        return f"in {seconds[:6]} s"
    return "within the hour"

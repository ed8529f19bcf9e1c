"""Firebase Cloud Messaging, HTTP v1: one request a message, so many at a time."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import orjson

from toolgate.outbound.client import AddressPolicy, Outbound
from toolgate.outbound.responses import (
    FetchedResponse,
    FetchFailed,
    FetchTimedOut,
    ResponseLimits,
    Unconnected,
)
from toolgate.outbound.service_accounts import NoAccessToken, ServiceAccount
from toolgate.packs.backend.push.fcm_answers import (
    TOO_MANY,
    UNAUTHORIZED,
    UNAVAILABLE,
    UNREACHABLE,
    refusal,
    result_of,
)
from toolgate.packs.backend.push.port import Delivery, Notification, PushResult, PushUnavailable

SCOPES = ("https://www.googleapis.com/auth/firebase.messaging",)
IN_FLIGHT = 50
"""Messages at a time; the pool of connections keeps 20 of them."""
PATIENCE = 10.0
"""The longest wait that the server may ask for before a message is sent once more, in seconds."""
WAITS = (1.0, 2.0)
"""Seconds before each further attempt, unless the server names others."""
SILENT, LOST = "TIMED_OUT", "CONNECTION_LOST"
NO_ANSWER = (
    "Firebase Cloud Messaging cannot be reached, or does not answer in time. Try again later."
)
MAX_BYTES = 64 * 1024


def message_of(notification: Notification, token: str) -> dict[str, Any]:
    """One message as FCM takes it."""
    shown = {"title": notification.title, "body": notification.body}
    message: dict[str, Any] = {"token": token, "notification": shown}
    if notification.image:
        shown["image"] = notification.image
    web: dict[str, Any] = {}
    if notification.icon:
        web["notification"] = {"icon": notification.icon}
    if link := notification.click_action:
        message["data"] = {"click_action": link}
        if link.startswith("https://"):  # FCM takes no other
            web["fcm_options"] = {"link": link}
    return {"message": message | ({"webpush": web} if web else {})}


@dataclass(slots=True)
class _Batch:
    """The messages of one call, and what is known of them."""

    notification: Notification
    results: dict[str, PushResult] = field(default_factory=dict[str, PushResult])
    unanswered: int = 0
    answered: bool = False
    refused: str | None = None
    """Why the rest is not worth trying."""

    def note(self, result: PushResult, *, answered: bool) -> None:
        self.results[result.token] = result
        self.answered |= answered
        self.unanswered += not answered
        if not self.answered and self.unanswered >= IN_FLIGHT:
            self.refused = NO_ANSWER  # a server that is gone is not asked 500 times


@dataclass(frozen=True, slots=True)
class FcmPush:
    """Sends with the service account of one project."""

    outbound: Outbound
    account: ServiceAccount
    project: str
    url: str
    seconds: float = 10.0
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep

    async def send(self, notification: Notification, tokens: Sequence[str]) -> list[PushResult]:
        """Send one message to each token."""
        await self._token()
        batch, turns = _Batch(notification), anyio.CapacityLimiter(IN_FLIGHT)
        async with anyio.create_task_group() as group:
            for token in dict.fromkeys(tokens):
                await turns.acquire_on_behalf_of(token)
                if batch.refused:
                    break
                group.start_soon(self._send_in_turn, batch, token, turns)
        results = [batch.results[one] for one in tokens if one in batch.results]
        if batch.refused:
            raise PushUnavailable(batch.refused, results)
        return results

    async def check(self) -> str:
        """Where notifications go; whether the service account is good for a token."""
        await self._token()
        return f"Firebase Cloud Messaging, project {self.project}; the service account is good."

    async def _send_in_turn(self, batch: _Batch, token: str, turns: anyio.CapacityLimiter) -> None:
        try:
            await self._send_one(batch, token)
        finally:
            turns.release_on_behalf_of(token)

    async def _send_one(self, batch: _Batch, token: str) -> None:
        content = orjson.dumps(message_of(batch.notification, token))
        try:
            response = await self._post_patiently(content)
        except PushUnavailable as problem:
            batch.refused = problem.message
        except FetchFailed as failed:
            batch.note(_unanswered(token, failed), answered=False)
        else:
            batch.refused = refusal(self.project, response) or batch.refused
            batch.note(result_of(token, response), answered=True)

    async def _post_patiently(self, content: bytes) -> FetchedResponse:
        """Send once more what was not taken, where the server says that it is busy."""
        response = await self._post_authorised(content)
        for wait in WAITS:
            seconds = _seconds_to_wait(response, wait)
            if seconds is None or seconds > PATIENCE:
                break
            await self.sleep(seconds)
            response = await self._post_authorised(content)
        return response

    async def _post_authorised(self, content: bytes) -> FetchedResponse:
        token = await self._token()
        response = await self._post(content, token)
        if response.status == UNAUTHORIZED and refusal(self.project, response):
            response = await self._post(content, await self._token(instead_of=token))
        return response

    async def _post(self, content: bytes, token: str) -> FetchedResponse:
        return await self.outbound.fetch(
            f"{self.url.rstrip('/')}/v1/projects/{self.project}/messages:send",
            ResponseLimits(seconds=self.seconds, most_bytes=MAX_BYTES, statuses=None),
            address_policy=AddressPolicy.PROXIED,
            method="POST",
            headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            content=content,
        )

    async def _token(self, instead_of: str | None = None) -> str:
        try:
            return await self.account.token(instead_of=instead_of)
        except NoAccessToken as problem:
            raise PushUnavailable(str(problem)) from problem
        except FetchFailed as problem:
            raise PushUnavailable(
                "The token server of the service account cannot be reached. Try again later."
            ) from problem


def _unanswered(token: str, failed: FetchFailed) -> PushResult:
    """What is known of a message without an answer: nothing, once there was a connection."""
    match failed:
        case Unconnected():
            return PushResult(token, Delivery.FAILED, UNREACHABLE)
        case FetchTimedOut():
            return PushResult(token, Delivery.UNKNOWN, SILENT)
        case _:
            return PushResult(token, Delivery.UNKNOWN, LOST)


def _seconds_to_wait(response: FetchedResponse, usual: float) -> float | None:
    """Until the same message may be sent once more; None where that is of no use."""
    asked = response.headers.get("retry-after", "")
    seconds = float(asked) if asked.isascii() and asked.isdigit() else None
    if response.status == UNAVAILABLE:
        return usual if seconds is None else seconds
    # Without a time, the quota of a whole minute is used up: asking again makes it worse.
    return seconds if response.status == TOO_MANY else None

"""SendGrid's API v3: one request a mail, which it holds until its time by itself."""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from toolgate.outbound.client import Outbound
from toolgate.outbound.hops import AddressPolicy
from toolgate.outbound.responses import FetchedResponse, FetchFailed, ResponseLimits
from toolgate.packs.backend.mail.addresses import Address
from toolgate.packs.backend.mail.message import (
    Message,
    Recipient,
    personal_texts,
    unsubscribe_headers,
)
from toolgate.packs.backend.mail.port import (
    Delivery,
    HandingOver,
    MailUnavailable,
    Outcome,
    Settled,
    server_words,
)

MAX_CATEGORIES = 10
TEMPORARY = {429, 500, 503}
IN_BETWEEN = {502, 504}
"""Said by something between us and SendGrid, which does not know whether the mail was taken."""
NO_KEY = "SENDGRID_API_KEY is not set (setting mail.sendgrid_key), so nothing can be sent."
BEFORE_SENDING = {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"}
"""Errors of the HTTP library from before a request is on its way."""


class SendGridMailer:
    """Sends with one account."""

    provider = "sendgrid"
    holds = True
    delivers = True

    def __init__(
        self,
        outbound: Outbound,
        url: str,
        key: str | None,
        *,
        groups: Mapping[str, int],
        seconds: float,
    ) -> None:
        self._outbound = outbound
        self._url = url.rstrip("/")
        self._key = key
        self._groups = groups
        self._limits = ResponseLimits(seconds=seconds, statuses=None)

    async def send(
        self,
        message: Message,
        recipients: Sequence[Recipient],
        settled: Settled | None = None,
        handing_over: HandingOver | None = None,
    ) -> Sequence[Delivery]:
        """One request for all recipients: SendGrid takes them all, or none.

        Raises `MailUnavailable` where there is no key.
        """
        if handing_over is not None:
            handing_over()
        outcome, words, temporary = await self._post(self._body(message, recipients))
        away = outcome is Outcome.REFUSED and temporary
        return [
            Delivery(one.address.email, outcome, words, temporary, unreachable=away)
            for one in recipients
        ]

    async def check(self) -> str:
        """Ask what the key may do."""
        try:
            response = await self._request("GET", "/v3/scopes")
        except FetchFailed as problem:
            raise MailUnavailable(str(problem)) from problem
        if response.status != 200:
            raise MailUnavailable(f"SendGrid refuses the key: {_words(response)}.")
        return f"{self._url} accepts the key"

    async def close(self) -> None:
        """The way out is closed by whoever opened it."""

    async def _post(self, body: dict[str, Any]) -> tuple[Outcome, str, bool]:
        try:
            response = await self._request("POST", "/v3/mail/send", orjson.dumps(body))
        except FetchFailed as problem:
            if _was_sent(problem):
                return Outcome.UNKNOWN, f"{problem} The mail may have been taken.", False
            return Outcome.REFUSED, str(problem), True
        words = _words(response)
        if response.status == 202:
            return Outcome.ACCEPTED, words, False
        if response.status in IN_BETWEEN:
            return Outcome.UNKNOWN, words, False
        return Outcome.REFUSED, words, response.status in TEMPORARY

    async def _request(
        self, method: str, path: str, content: bytes | None = None
    ) -> FetchedResponse:
        if self._key is None:
            raise MailUnavailable(NO_KEY)
        headers = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        return await self._outbound.fetch(
            self._url + path,
            self._limits,
            address_policy=AddressPolicy.PROXIED,
            method=method,
            headers=headers,
            content=content,
        )

    def _body(self, message: Message, recipients: Sequence[Recipient]) -> dict[str, Any]:
        group = self._groups.get(message.group, None) if isinstance(message.group, str) else None
        number = message.group if isinstance(message.group, int) else group
        # SendGrid writes each recipient's own link where it knows the group; ours is one person's.
        alone = recipients[0].unsubscribe if len(recipients) == 1 else None
        html, text = personal_texts(
            message, "<%asm_group_unsubscribe_raw_url%>" if number else alone
        )
        headers = {**message.headers, "Message-ID": f"<{message.message_id}>"}
        body: dict[str, Any] = {
            "personalizations": [_people(recipients)],
            "from": _person(message.sender),
            "subject": message.subject,
            "content": [
                {"type": "text/plain", "value": text},
                {"type": "text/html", "value": html},
            ],
            "headers": headers if number else headers | unsubscribe_headers(alone),
            "custom_args": {"toolgate_id": message.id},
        }
        if message.reply_to is not None:
            body["reply_to"] = _person(message.reply_to)
        if message.categories:
            body["categories"] = list(message.categories[:MAX_CATEGORIES])
        if number:
            body["asm"] = {"group_id": number}
        if message.send_at is not None:
            body["send_at"] = int(message.send_at.timestamp())
        return body


def _people(recipients: Sequence[Recipient]) -> dict[str, Any]:
    fields = dict[str, list[dict[str, str]]]()
    for one in recipients:
        fields.setdefault(one.field, []).append(_person(one.address))
    return fields


def _person(address: Address) -> dict[str, str]:
    return {"email": address.email} | ({"name": address.name} if address.name else {})


def _was_sent(problem: FetchFailed) -> bool:
    """Whether the request may have reached SendGrid."""
    if problem.__cause__ is None:
        return type(problem) is not FetchFailed  # which then is about the address
    return type(problem.__cause__).__name__ not in BEFORE_SENDING


def _words(response: FetchedResponse) -> str:
    """What SendGrid says is wrong, or the status alone."""
    try:
        body: Any = orjson.loads(response.body)
        messages = [str(one["message"]) for one in body["errors"]]
    except (orjson.JSONDecodeError, LookupError, TypeError):
        messages = []
    return server_words(response.status, "; ".join(messages))

"""SendGrid's marketing contacts: a copy of the list."""

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

import orjson

from toolgate.outbound.client import AddressPolicy, Outbound
from toolgate.outbound.responses import FetchedResponse, FetchFailed, FetchTimedOut, ResponseLimits
from toolgate.outbound.service_accounts import json_object
from toolgate.packs.backend.marketing.contacts import Contact, ProviderFailed

LIMITS = ResponseLimits(seconds=10.0, most_bytes=256 * 1024, statuses=None)
OK, ACCEPTED, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, TOO_MANY = 200, 202, 401, 403, 404, 429
PATH = "/v3/marketing/contacts"


@dataclass(frozen=True, slots=True)
class SendGridContacts:
    """Speaks SendGrid's API; what it is told can be told again."""

    outbound: Outbound
    url: str
    key: str
    name: str = "sendgrid"

    async def add(self, contact: Contact) -> dict[str, Any]:
        """Add or change a contact; the number of SendGrid's job."""
        fields = {"email": contact.email}
        if contact.first_name:
            fields["first_name"] = contact.first_name
        if contact.last_name:
            fields["last_name"] = contact.last_name
        answer = await self._ask("PUT", PATH, {"contacts": [fields]}, ok=(ACCEPTED, OK))
        job = json_object(answer.body).get("job_id")
        if not isinstance(job, str):
            raise ProviderFailed("SendGrid's answer cannot be read.")
        return {"jobId": job}

    async def remove(self, email: str) -> bool:
        """Remove a contact; False where there was none."""
        answer = await self._ask(
            "POST", f"{PATH}/search/emails", {"emails": [email]}, ok=(OK, NOT_FOUND)
        )
        if answer.status == NOT_FOUND:
            return False
        id = _contact_id(json_object(answer.body), email)
        if id is None:
            return False
        await self._ask("DELETE", f"{PATH}?{urlencode({'ids': id})}", None, ok=(ACCEPTED, OK))
        return True

    async def _ask(
        self, method: str, path: str, body: dict[str, Any] | None, *, ok: tuple[int, ...]
    ) -> FetchedResponse:
        headers = {"Authorization": f"Bearer {self.key}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            answer = await self.outbound.fetch(
                f"{self.url.rstrip('/')}{path}",
                LIMITS,
                address_policy=AddressPolicy.PROXIED,
                method=method,
                headers=headers,
                content=None if body is None else orjson.dumps(body),
            )
        except FetchTimedOut as problem:
            raise ProviderFailed("SendGrid does not answer in time. Try again later.") from problem
        except FetchFailed as problem:
            raise ProviderFailed("SendGrid cannot be reached. Try again later.") from problem
        if answer.status not in ok:
            raise ProviderFailed(_refusal(answer))
        return answer


def _contact_id(answer: dict[str, Any], email: str) -> str | None:
    found: Any = answer
    for name in ("result", email, "contact", "id"):
        if not isinstance(found, dict) or name not in found:
            if name == "result":
                raise ProviderFailed("SendGrid's answer cannot be read.")
            return None
        found = found[name]  # pyright: ignore[reportUnknownVariableType]
    return found if isinstance(found, str) else None


def _refusal(answer: FetchedResponse) -> str:
    if answer.status in (UNAUTHORIZED, FORBIDDEN):
        return "SendGrid refuses the key. Give it the permission Marketing."
    if answer.status == TOO_MANY:
        return "SendGrid takes no more requests now. Try again later."
    return f"SendGrid answers with status {answer.status}. Try again later."

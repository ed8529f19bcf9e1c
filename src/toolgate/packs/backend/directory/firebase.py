"""Firebase Auth, over the REST API of Identity Toolkit."""

import json
from datetime import UTC, datetime
from typing import Any, Protocol, cast
from urllib.parse import quote, urlencode

from toolgate.outbound.client import Outbound
from toolgate.outbound.hops import AddressPolicy
from toolgate.outbound.responses import FetchFailed, ResponseLimits
from toolgate.outbound.service_accounts import NoAccessToken
from toolgate.packs.backend.directory.port import PAGE, Account, AccountPage
from toolgate.ports.documents import StoreUnavailable

SCOPES = ("https://www.googleapis.com/auth/identitytoolkit",)
SECONDS = 30.0
MAX_BYTES = 8 * 1024 * 1024
AWAY = "Firebase Auth does not answer. Try again later."
UNREADABLE = "Firebase Auth answered something that is no list of accounts."
OK, UNAUTHORIZED = 200, (401, 403)
NO_ACCESS = "Firebase Auth refuses the service account. It needs the role firebaseauth.viewer."


class Tokens(Protocol):
    """Gives access tokens."""

    async def token(self) -> str:
        """One that is valid."""
        ...


class FirebaseDirectory:
    """The accounts of a Firebase project."""

    def __init__(self, outbound: Outbound, tokens: Tokens, project: str, url: str) -> None:
        self._outbound = outbound
        self._tokens = tokens
        self._url = f"{url.rstrip('/')}/v1/projects/{quote(project, safe='')}/accounts:batchGet"

    async def page(self, token: str | None) -> AccountPage:
        """The accounts of a page."""
        asked = {"maxResults": str(PAGE)} | ({"nextPageToken": token} if token else {})
        try:
            bearer = {"Authorization": f"Bearer {await self._tokens.token()}"}
            response = await self._outbound.fetch(
                f"{self._url}?{urlencode(asked)}",
                ResponseLimits(seconds=SECONDS, most_bytes=MAX_BYTES, statuses=None),
                address_policy=AddressPolicy.PROXIED,
                headers=bearer,
            )
        except NoAccessToken as problem:
            raise StoreUnavailable(str(problem)) from problem
        except FetchFailed as problem:
            raise StoreUnavailable(AWAY) from problem
        if response.status in UNAUTHORIZED:
            raise StoreUnavailable(NO_ACCESS)
        if response.status != OK:
            raise StoreUnavailable(AWAY)
        try:
            return _page(json.loads(response.body))
        except (ValueError, TypeError, KeyError, AttributeError) as problem:
            raise StoreUnavailable(UNREADABLE) from problem


def _page(answer: dict[str, Any]) -> AccountPage:
    users = cast("list[dict[str, Any]]", answer.get("users") or [])
    # A token without accounts would be asked for again and again.
    token = answer.get("nextPageToken") or None if users else None
    return AccountPage([_account(one) for one in users], token)


def _account(user: dict[str, Any]) -> Account:
    created = user.get("createdAt")
    return Account(
        uid=str(user["localId"]),
        email=user.get("email"),
        name=user.get("displayName"),
        created=datetime.fromtimestamp(int(created) / 1000, UTC) if created else None,
        anonymous=not any(user.get(key) for key in ("email", "phoneNumber", "providerUserInfo")),
    )

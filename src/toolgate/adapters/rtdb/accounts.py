"""Access tokens of a service account, fetched over the one way out and kept while they are valid.

Importing this module imports the Google libraries; do so only when a setting asks for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread

from toolgate.outbound.client import AddressPolicy, Outbound
from toolgate.outbound.responses import FetchFailed, ResponseLimits
from toolgate.ports.documents import StoreUnavailable

try:
    from google.auth import transport
    from google.auth.exceptions import GoogleAuthError, TransportError
    from google.oauth2.service_account import Credentials
except ImportError as missing:
    raise ImportError(
        "A service account needs packages that are not installed. Install toolgate[firestore]."
    ) from missing

SCOPES = (
    "https://www.googleapis.com/auth/firebase.database",
    "https://www.googleapis.com/auth/userinfo.email",
)
NO_ACCOUNT = "The service account of Realtime Database is not valid. Check its JSON key."
NO_ACCESS = "Google gives the service account no access token. Check its key and the clock."
SECONDS = 10.0


class ServiceAccount:
    """Gives access tokens."""

    def __init__(self, outbound: Outbound, info: Mapping[str, Any]) -> None:
        account: Any = Credentials
        try:
            self._credentials: Any = account.from_service_account_info(info, scopes=SCOPES)
        except (ValueError, GoogleAuthError):
            # Not chained: the error may carry the key.
            raise StoreUnavailable(NO_ACCOUNT) from None
        self._request = _Request(outbound)
        self._refreshing = anyio.Lock()

    async def token(self) -> str:
        """An access token that is valid; one request for all who wait for it."""
        async with self._refreshing:
            if not self._credentials.valid:
                try:
                    await anyio.to_thread.run_sync(self._credentials.refresh, self._request)
                # Where the answer is no JSON object, the library stumbles over it.
                except (GoogleAuthError, TypeError, ValueError) as problem:
                    raise StoreUnavailable(NO_ACCESS) from problem
            return str(self._credentials.token)


@dataclass(frozen=True, slots=True)
class _Response:
    """Has what Google's library looks at."""

    status: int
    headers: Mapping[str, str]
    data: bytes


class _Request(transport.Request):
    """How Google's library asks, from the thread it runs in."""

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound

    def __call__(
        self,
        url: str,
        method: str = "GET",
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        **kwargs: Any,
    ) -> Any:
        return anyio.from_thread.run(self._fetch, url, method, body, headers)

    async def _fetch(
        self, url: str, method: str, body: bytes | None, headers: Mapping[str, str] | None
    ) -> _Response:
        try:
            response = await self._outbound.fetch(
                url,
                ResponseLimits(seconds=SECONDS, statuses=None),
                address_policy=AddressPolicy.PROXIED,
                method=method,
                headers=headers,
                content=body,
            )
        except FetchFailed as problem:
            raise TransportError(str(problem)) from problem
        return _Response(response.status, response.headers, response.body)

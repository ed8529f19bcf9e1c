"""Access tokens of a service account for Realtime Database; what goes wrong is the store's."""

from collections.abc import Mapping
from typing import Any

from toolgate.outbound import service_accounts
from toolgate.outbound.client import Outbound
from toolgate.outbound.responses import FetchFailed
from toolgate.ports.documents import StoreUnavailable

SCOPES = (
    "https://www.googleapis.com/auth/firebase.database",
    "https://www.googleapis.com/auth/userinfo.email",
)
NO_ACCOUNT = "The service account of Realtime Database is not valid. Check its JSON key."
NO_ACCESS = "Google gives the service account no access token. Check its key and the clock."


class ServiceAccount:
    """Gives access tokens."""

    def __init__(self, outbound: Outbound, info: Mapping[str, Any]) -> None:
        try:
            self._account = service_accounts.ServiceAccount(outbound, info, SCOPES)
        except service_accounts.BadServiceAccount:
            # Not chained: the error may carry the key.
            raise StoreUnavailable(NO_ACCOUNT) from None

    async def token(self) -> str:
        """An access token that is valid; one request for all who wait for it."""
        try:
            return await self._account.token()
        except FetchFailed as problem:
            raise StoreUnavailable(NO_ACCESS) from problem

"""HTTP for Stripe's client library, over the one way out."""

from collections.abc import Awaitable, Mapping
from typing import Any

import anyio
from stripe import APIConnectionError, HTTPClient

from toolgate.outbound.client import AddressPolicy, Outbound
from toolgate.outbound.responses import FetchFailed, ResponseLimits

MOST_BYTES = 4 * 1024 * 1024
SECONDS_A_REQUEST = 10.0
OURS = {"user-agent", "accept-encoding"}
"""Headers that the way out sets itself."""


class StripeHttp(HTTPClient):
    """Sends the library's requests: bounded in time and size, no redirect followed."""

    name = "toolgate"

    def __init__(self, outbound: Outbound, seconds: float) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] (of the library)
        self._outbound = outbound
        self._limits = ResponseLimits(
            seconds=min(seconds, SECONDS_A_REQUEST), most_bytes=MOST_BYTES, statuses=None
        )

    async def request_async(
        self, method: str, url: str, headers: Mapping[str, str], post_data: Any = None
    ) -> tuple[bytes, int, Mapping[str, str]]:
        """One request; what fails may be sent again by the library, with the same key."""
        content = post_data.encode() if isinstance(post_data, str) else post_data
        try:
            response = await self._outbound.fetch(
                url,
                self._limits,
                address_policy=AddressPolicy.PROXIED,
                method=method.upper(),
                headers={name: one for name, one in headers.items() if name.lower() not in OURS},
                content=content,
            )
        except FetchFailed as problem:
            raise APIConnectionError(str(problem), should_retry=True) from problem
        return response.body, response.status, response.headers

    def sleep_async(self, secs: float) -> Awaitable[None]:
        """Wait before the next try."""
        return anyio.sleep(secs)

    async def close_async(self) -> None:
        """The connections are closed by their owner."""

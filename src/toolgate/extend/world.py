"""What a user's own tools share while the gate is open."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolgate.gate.errors import RouteFailed
from toolgate.gate.fetch_errors import error_of_fetch
from toolgate.outbound.client import Outbound
from toolgate.outbound.hops import AddressPolicy
from toolgate.outbound.responses import (
    FetchedResponse,
    FetchFailed,
    ResponseLimits,
    UnexpectedEncoding,
)
from toolgate.ports.documents import DocumentStore
from toolgate.sections import LimitSettings

UNREACHABLE = "cannot be reached. Try again later."


@dataclass(frozen=True, slots=True)
class OwnWorld:
    """The application's documents, and the way out."""

    documents: DocumentStore
    outbound: Outbound
    seconds: float
    limits: LimitSettings

    async def request(
        self,
        tool: str,
        method: str,
        url: str,
        headers: Mapping[str, str],
        content: bytes | None,
        *,
        attached: bool = False,
    ) -> FetchedResponse:
        """One request to a route; every failure is one the caller may know.

        A response with an attachment may be longer; what of it is too large, the gate says.
        """
        most = self.limits.result_bytes
        if attached:
            most += self.limits.attachment_bytes * 4 // 3
        limits = ResponseLimits(seconds=self.seconds, most_bytes=most, statuses=None)
        headers = {"Accept": "application/json", **headers}
        try:
            return await self.outbound.fetch(
                url,
                limits,
                address_policy=AddressPolicy.DIRECT,
                method=method,
                headers=headers,
                content=content,
            )
        except FetchFailed as problem:
            route = f"The route of {tool}"
            if isinstance(problem, UnexpectedEncoding):
                raise RouteFailed(f"{route} answered in an encoding nobody asked for.") from None
            raise error_of_fetch(problem, route, UNREACHABLE) from problem.__cause__

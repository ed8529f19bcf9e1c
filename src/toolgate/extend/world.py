"""What a user's own tools share while the gate is open."""

from collections.abc import Mapping
from dataclasses import dataclass

from toolgate.gate.errors import GateError, ResultTooLarge, RouteFailed, TimedOut, Unavailable
from toolgate.outbound.client import Outbound
from toolgate.outbound.hops import AddressPolicy
from toolgate.outbound.responses import (
    FetchedResponse,
    FetchFailed,
    FetchTimedOut,
    ResponseLimits,
    ResponseTooLarge,
    UnexpectedEncoding,
)
from toolgate.ports.documents import DocumentStore
from toolgate.sections import LimitSettings

FAILURES: dict[type[FetchFailed], tuple[type[GateError], str]] = {
    FetchTimedOut: (TimedOut, "did not answer within {seconds:g} s. Try again later."),
    ResponseTooLarge: (
        ResultTooLarge,
        "answered more than {most} bytes. Ask for fewer items or use a filter.",
    ),
    UnexpectedEncoding: (RouteFailed, "answered in an encoding nobody asked for."),
    FetchFailed: (Unavailable, "cannot be reached. Try again later."),
}


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
            error, told = FAILURES[type(problem)]
            told = told.format(seconds=self.seconds, most=most)
            raise error(f"The route of {tool} {told}") from problem.__cause__

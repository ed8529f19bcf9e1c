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
    most_bytes: int

    async def request(
        self, tool: str, method: str, url: str, headers: Mapping[str, str], content: bytes | None
    ) -> FetchedResponse:
        """One request to a route; every failure is one the caller may know."""
        bounds = ResponseLimits(seconds=self.seconds, most_bytes=self.most_bytes, statuses=None)
        headers = {"Accept": "application/json", **headers}
        try:
            return await self.outbound.fetch(
                url,
                bounds,
                reach=AddressPolicy.DIRECT,
                method=method,
                headers=headers,
                content=content,
            )
        except FetchFailed as problem:
            error, told = FAILURES[type(problem)]
            told = told.format(seconds=self.seconds, most=self.most_bytes)
            raise error(f"The route of {tool} {told}") from problem.__cause__

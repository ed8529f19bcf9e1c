"""What an OpenID Connect provider says of itself."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolgate.identity.providers import ProviderUnavailable, SignInFailed
from toolgate.identity.providers.addresses import is_safe
from toolgate.identity.shared_requests import SharedRequests
from toolgate.outbound.json_fetcher import JsonFetcher
from toolgate.outbound.responses import FetchFailed

PATH = "/.well-known/openid-configuration"
KEPT_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Metadata:
    """The parts of a provider's document that we use."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str | None
    names_itself: bool
    """Whether its answers carry its name, as `iss`."""


class Discovery:
    """Reads the document of one issuer, and keeps it for an hour."""

    def __init__(
        self, fetcher: JsonFetcher, issuer: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetcher = fetcher
        self._issuer = issuer
        self._clock = clock
        self._kept: tuple[float, Metadata] | None = None
        self._asking = SharedRequests[Metadata]()

    async def metadata(self) -> Metadata:
        """What the provider says; raise `SignInFailed` when it cannot be used."""
        if self._kept is not None and self._kept[0] > self._clock():
            return self._kept[1]
        return await self._asking.run("", self._ask)

    async def _ask(self) -> Metadata:
        try:
            document = await self._fetcher.get(self._issuer.rstrip("/") + PATH)
        except FetchFailed as problem:
            raise ProviderUnavailable(f"The provider cannot be used now: {problem}") from problem
        metadata = self._read(document.body)
        self._kept = (self._clock() + KEPT_SECONDS, metadata)
        return metadata

    def _read(self, document: dict[str, Any]) -> Metadata:
        if document.get("issuer") != self._issuer:
            raise SignInFailed(
                "The provider's document names another issuer than sign_in.oidc_issuer. "
                "Ask the operator to set it exactly as the provider writes it."
            )
        return Metadata(
            issuer=self._issuer,
            authorization_endpoint=_endpoint(document, "authorization_endpoint"),
            token_endpoint=_endpoint(document, "token_endpoint"),
            jwks_uri=_endpoint(document, "jwks_uri"),
            userinfo_endpoint=_endpoint(document, "userinfo_endpoint")
            if "userinfo_endpoint" in document
            else None,
            names_itself=document.get("authorization_response_iss_parameter_supported") is True,
        )


def _endpoint(document: dict[str, Any], field: str) -> str:
    if not is_safe(document.get(field)):
        raise SignInFailed(f"{field} in the provider's document must be an https:// address.")
    return document[field]

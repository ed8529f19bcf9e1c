"""The keys a provider signs with, as it publishes them."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from toolgate.identity.providers import ProviderUnavailable, SignInFailed
from toolgate.identity.shared_requests import SharedRequests
from toolgate.outbound.json_fetcher import JsonFetcher
from toolgate.outbound.responses import FetchFailed

PublicKey = RSAKey | ECKey | OKPKey

KINDS: dict[str, type[PublicKey]] = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}
"""Key pairs only: a secret that is published is none."""

LEAST_SECONDS = 60.0
MAX_SECONDS = 86400.0
USUAL_SECONDS = 3600.0
AGAIN_AFTER_SECONDS = 30.0
"""A key we do not know makes us look again, but not more often than this."""


class SigningKeys:
    """The public keys of a JWK set, kept as long as its server says."""

    def __init__(
        self, fetcher: JsonFetcher, url: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._fetcher = fetcher
        self._url = url
        self._clock = clock
        self._keys: list[PublicKey] = []
        self._asked_at = float("-inf")
        self._fresh_until = float("-inf")
        self._asking = SharedRequests[None]()

    async def key(self, kid: object) -> PublicKey:
        """The key with an id, or the only one there is; raise `SignInFailed` unless it is known."""
        if self._clock() >= self._fresh_until:
            await self._asking.run("", self._ask)
        key = self._find(kid)
        if key is None and self._clock() >= self._asked_at + AGAIN_AFTER_SECONDS:
            await self._asking.run("", self._ask)
            key = self._find(kid)
        if key is None:
            raise SignInFailed("The ID token is signed with an unknown key. Sign in again.")
        return key

    def _find(self, kid: object) -> PublicKey | None:
        if kid is None:
            return self._keys[0] if len(self._keys) == 1 else None
        return next((key for key in self._keys if key.kid == kid), None)

    async def _ask(self) -> None:
        try:
            document = await self._fetcher.get(self._url)
        except FetchFailed as problem:
            raise ProviderUnavailable(
                f"The keys of the sign-in are not available: {problem}"
            ) from problem
        self._keys = _import_keys(document.body.get("keys"))
        seconds = USUAL_SECONDS if document.fresh_seconds is None else document.fresh_seconds
        self._asked_at = self._clock()
        self._fresh_until = self._asked_at + min(max(seconds, LEAST_SECONDS), MAX_SECONDS)


def _import_keys(published: object) -> list[PublicKey]:
    """The keys we can use; sets may have others, which are none of our business."""
    keys: list[PublicKey] = []
    for one in cast("list[Any]", published) if isinstance(published, list) else []:
        described = cast("dict[str, Any]", one) if isinstance(one, dict) else {}
        kind = KINDS.get(described.get("kty", ""))
        if kind is None or described.get("use", "sig") != "sig":
            continue
        with suppress(JoseError, ValueError, TypeError, KeyError):
            keys.append(kind.import_key(described))
    return keys

"""Access tokens of a Google service account: fetched over the one way out, kept while valid.

The account signs a short statement with its key (RFC 7523) and gets a token for it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlencode

import anyio
import orjson

from toolgate.outbound.client import Outbound
from toolgate.outbound.hops import AddressPolicy
from toolgate.outbound.responses import FetchFailed, ResponseLimits

TOKEN_URI = "https://oauth2.googleapis.com/token"  # noqa: S105 (an address)
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
SIGNED_SECONDS = 3600
"""How long the signed statement counts; Google takes no more."""
SPARE_SECONDS = 300.0
"""A token is replaced so long before its end, or in the last tenth of a short one."""
LIMITS = ResponseLimits(seconds=10.0, statuses=None)
OK = 200


class BadServiceAccount(ValueError):
    """This is no service account's key; the message is fit for a page and holds no secret."""


class NoAccessToken(FetchFailed):
    """Google gives no token; the message is fit for a caller."""


class ServiceAccount:
    """Gives access tokens."""

    def __init__(
        self,
        outbound: Outbound,
        info: Mapping[str, Any],
        scopes: Sequence[str],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._outbound = outbound
        self._email, self._key = _text(info, "client_email"), _key(_text(info, "private_key"))
        self._key_id = info.get("private_key_id")
        self._uri = str(info.get("token_uri") or TOKEN_URI)
        self._scope = " ".join(scopes)
        self._clock = clock
        self._token, self._until = "", 0.0
        self._asking = anyio.Lock()

    async def token(self, *, instead_of: str | None = None) -> str:
        """A token that is valid; one request for all who wait for it.

        `instead_of`: one that was refused, though by its time it should be good.
        """
        async with self._asking:
            if self._clock() >= self._until or self._token == instead_of:
                self._token, self._until = await self._fetch()
            return self._token

    async def _fetch(self) -> tuple[str, float]:
        now = self._clock()
        response = await self._outbound.fetch(
            self._uri,
            LIMITS,
            address_policy=AddressPolicy.PROXIED,
            method="POST",
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            content=urlencode({"grant_type": GRANT, "assertion": self._statement(now)}).encode(),
        )
        answer = json_object(response.body)
        token, seconds = answer.get("access_token"), answer.get("expires_in")
        if response.status != OK or not isinstance(token, str) or not token:
            why = answer.get("error")
            told = (
                f" ({why})" if isinstance(why, str) and why.isascii() and why.isprintable() else ""
            )
            raise NoAccessToken(
                f"Google gives the service account no access token{told[:64]}. "
                "Check its key and the clock."
            )
        lasts = float(seconds) if isinstance(seconds, int | float) else SIGNED_SECONDS
        return token, now + lasts - min(SPARE_SECONDS, lasts / 10)

    def _statement(self, now: float) -> str:
        from joserfc import jwt  # noqa: PLC0415 (only who has an account pays for it)

        header = {"alg": "RS256", "typ": "JWT"}
        if isinstance(self._key_id, str):
            header["kid"] = self._key_id
        claims = {
            "iss": self._email,
            "scope": self._scope,
            "aud": self._uri,
            "iat": int(now),
            "exp": int(now) + SIGNED_SECONDS,
        }
        return jwt.encode(header, claims, self._key)


def account_text(json: str | None, file: Path | None) -> str:
    """The JSON text of a key, given or in a file; raises `BadServiceAccount`."""
    if json is not None:
        return json
    if file is None:
        raise BadServiceAccount("There is none.")
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadServiceAccount(f"{file} cannot be read.") from None


def account_info(text: str) -> dict[str, Any]:
    """What the JSON text of a service account's key says; raises `BadServiceAccount`."""
    info = json_object(text.encode())
    if not info:
        raise BadServiceAccount("The service account is not a JSON object.")
    return info


def json_object(body: bytes) -> dict[str, Any]:
    """The object that a body is; an empty one where it is something else."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(info: Mapping[str, Any], name: str) -> str:
    value = info.get(name)
    if not isinstance(value, str) or not value:
        raise BadServiceAccount(f"The service account has no {name}.")
    return value


def _key(pem: str) -> Any:
    from joserfc.errors import JoseError  # noqa: PLC0415
    from joserfc.jwk import RSAKey  # noqa: PLC0415

    try:
        return RSAKey.import_key(pem)
    except (JoseError, TypeError, ValueError):
        # Not chained: the error may carry the key.
        raise BadServiceAccount("The private_key of the service account is none.") from None

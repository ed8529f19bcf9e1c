"""ID tokens: whose signature, for whom, until when."""

import time
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, TypeGuard

from joserfc import jws, jwt
from joserfc.errors import ExpiredTokenError, JoseError, SecurityWarning
from joserfc.jwk import ECKey, OKPKey, RSAKey

from toolgate.gate.errors import printable
from toolgate.identity.providers import Profile, SignInFailed
from toolgate.identity.providers.signing_keys import SigningKeys

LEEWAY_SECONDS = 60
MAX_TOKEN = 16 * 1024
MAX_EMAIL = 320

AGAIN = "Sign in again."


@dataclass(frozen=True, slots=True)
class ExpectedClaims:
    """What a token has to say to be ours."""

    issuer: str
    audience: str
    algorithms: Collection[str]


async def verified_claims(
    token: str, keys: SigningKeys, expected: ExpectedClaims
) -> dict[str, Any]:
    """The claims of a token that is genuine, for us and in time; else `SignInFailed`."""
    if len(token) > MAX_TOKEN:
        raise SignInFailed(f"The ID token is too large. {AGAIN}")
    # The old name of the algorithm is what providers still write.
    warnings.filterwarnings("ignore", "EdDSA is deprecated", SecurityWarning)
    registry = jws.JWSRegistry(algorithms=expected.algorithms, strict_check_header=False)
    try:
        header = jws.extract_compact(token.encode(), registry=registry).headers()
        # Before the key is looked for: nobody asks the provider for keys with a hopeless token.
        registry.check_header(header)
        registry.get_alg(header["alg"])
        key = await keys.key(header.get("kid"))
        claims = _decode(token, key, registry)
        _claims_registry(expected).validate(claims)
    except ExpiredTokenError:
        raise SignInFailed(f"The ID token has expired. {AGAIN}") from None
    except (JoseError, ValueError, TypeError, KeyError) as problem:
        # The library's words may quote the token; they go to the cause, not to the page.
        raise SignInFailed(f"The ID token is not valid. {AGAIN}") from problem
    return claims


def _decode(token: str, key: RSAKey | ECKey | OKPKey, registry: jws.JWSRegistry) -> dict[str, Any]:
    return jwt.decode(token, key, registry=registry).claims


def _claims_registry(expected: ExpectedClaims) -> jwt.JWTClaimsRegistry:
    return jwt.JWTClaimsRegistry(
        leeway=LEEWAY_SECONDS,
        iss={"essential": True, "value": expected.issuer},
        aud={"essential": True, "value": expected.audience},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
    )


def is_past(moment: object) -> bool:
    """Whether a claim is a time that is not ahead of us."""
    if isinstance(moment, bool) or not isinstance(moment, int | float):
        return False
    return moment <= time.time() + LEEWAY_SECONDS


def profile(claims: dict[str, Any]) -> Profile:
    """Who the claims are about; an address the provider calls unverified is not passed on.

    People write their names themselves: what no page or record can hold is replaced.
    """
    email, name = claims.get("email"), claims.get("name")
    verified_email = claims.get("email_verified") not in (False, "false")
    return Profile(
        uid=claims["sub"],
        email=email if _is_address(email) and verified_email else None,
        name=printable(name) if isinstance(name, str) and name else None,
    )


def _is_address(value: object) -> TypeGuard[str]:
    """Whether it can be an e-mail address: half of one is none."""
    return isinstance(value, str) and 0 < len(value) <= MAX_EMAIL and value.isprintable()

"""ID tokens with real signatures, by keys made when the tests run."""

import base64
import hashlib
import hmac
import json
import time
import warnings
from typing import Any

from joserfc import jws
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey

PrivateKey = RSAKey | ECKey | OKPKey


def rsa(kid: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


def jwk_set(*keys: PrivateKey) -> dict[str, Any]:
    """The public halves, as a provider publishes them."""
    return dict(KeySet(list(keys)).as_dict(private=False))


def signed(key: PrivateKey, claims: dict[str, Any], alg: str = "RS256", **header: Any) -> str:
    named = {"typ": "JWT", "alg": alg, "kid": key.kid, **header}
    given = {n: v for n, v in named.items() if v is not None}
    # Escaped, so that a token can say what no text can: others' libraries write such ones.
    content = json.dumps(claims).encode()
    with warnings.catch_warnings(category=SecurityWarning, action="ignore"):
        return jws.serialize_compact(given, content, key, [alg])


def unsigned(claims: dict[str, Any], alg: str = "none", **header: Any) -> str:
    """A token with an empty signature."""
    return f"{_part({'alg': alg, **header})}.{_part(claims)}."


def signed_with_the_public_key(key: RSAKey, claims: dict[str, Any]) -> str:
    """What a careless verifier takes for a signature: HMAC with the key everybody knows."""
    return signed_with_a_secret(key.as_pem(private=False), claims, kid=key.kid)


def signed_with_a_secret(secret: bytes, claims: dict[str, Any], **header: Any) -> str:
    content = f"{_part({'alg': 'HS256', **header})}.{_part(claims)}"
    return f"{content}.{_text(hmac.new(secret, content.encode(), hashlib.sha256).digest())}"


def changed(token: str, **claims: Any) -> str:
    """The same signature under other claims."""
    header, payload, signature = token.split(".")
    was = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    return f"{header}.{_part({**was, **claims})}.{signature}"


def now(seconds: float = 0) -> int:
    return int(time.time() + seconds)


def _part(content: dict[str, Any]) -> str:
    return _text(json.dumps(content).encode())


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()

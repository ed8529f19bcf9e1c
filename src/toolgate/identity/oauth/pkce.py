"""Proof key for code exchange (RFC 7636), method S256 only."""

import base64
import hashlib
import hmac
import re

CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}")
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}")


def matches_challenge(verifier: str, challenge: str) -> bool:
    """Whether this verifier is the one the challenge was made from."""
    if not VERIFIER.fullmatch(verifier):
        return False
    expected = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=")
    return hmac.compare_digest(expected, challenge.encode())

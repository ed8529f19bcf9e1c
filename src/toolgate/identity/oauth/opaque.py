"""Codes and tokens: `KIND_ID_SECRET`. The id finds the row, the secret has 256 random bits."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass

CODE = "tgc"
ACCESS = "tga"
REFRESH = "tgr"


@dataclass(frozen=True, slots=True)
class Secret:
    """A code or token just made; only the hash is kept."""

    id: str
    text: str
    hash: bytes


def new(kind: str) -> Secret:
    """A code or token that nobody can guess."""
    number = secrets.token_hex(16)
    text = f"{kind}_{number}_{secrets.token_hex(32)}"
    return Secret(number, text, digest(text))


def id_of(text: str, kind: str) -> str | None:
    """The id in a code or token of this kind; None when it is none."""
    parts = text.split("_")
    good = len(parts) == 3 and parts[0] == kind and len(parts[1]) == 32 and parts[1].isalnum()
    return parts[1] if good and text.isascii() else None


def digest(text: str) -> bytes:
    """What is kept of a secret."""
    return hashlib.sha256(text.encode()).digest()


def matches(text: str, stored: bytes | None) -> bool:
    """Whether this is the secret; takes as long when there is none to compare with."""
    return hmac.compare_digest(digest(text), stored or bytes(32)) and stored is not None


def derive(secret: str, purpose: str) -> str:
    """A value that only the holder of the secret can name, for one purpose."""
    return hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).hexdigest()

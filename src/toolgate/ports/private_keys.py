"""A user's private key, `api.privateKey` of the record: a credential of that user.

toolgate stores the hash of a key. An application that writes records past toolgate, into Firestore,
may keep the key itself there; that one is good too. No tool shows either of them.
"""

import hashlib
import hmac
import re
import secrets
from typing import Any, cast

from toolgate.ports.users import Record

API, PRIVATE_KEY = "api", "privateKey"
FIELD = f"{API}.{PRIVATE_KEY}"
PREFIX = "pk_"
FORM = re.compile(r"(?!tg[a-z]?_)[A-Za-z0-9_-]{32,128}", re.ASCII)
"""Of `pk_` and 32 digits that are made here, and of what applications made before; no other key."""
HASHED = "sha256:"
RULE = "32 to 128 letters, digits, _ and -"


def new_private_key() -> str:
    """A key with 128 random bits."""
    return PREFIX + secrets.token_hex(16)


def may_be_private_key(credential: str) -> bool:
    """Whether it is worth looking for; a hash that somebody saw is not."""
    return FORM.fullmatch(credential) is not None


def stored_form(key: str) -> str:
    """What is kept of a key."""
    return HASHED + hashlib.sha256(key.encode()).hexdigest()


def stored_key(record: Record | None) -> str | None:
    """What a record keeps of its user's key."""
    api: Any = (record or {}).get(API)
    stored = cast("Record", api).get(PRIVATE_KEY) if isinstance(api, dict) else None
    return stored if isinstance(stored, str) and stored else None


def holds(record: Record, key: str) -> bool:
    """Whether it is the key of this record's user."""
    stored = (stored_key(record) or "").encode()
    return any(hmac.compare_digest(stored, one.encode()) for one in (stored_form(key), key))

"""The record of a user: the document `users/UID`.

Applications write parts of it; what is missing has a default.
"""

import secrets
from collections.abc import Mapping
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any, cast

from toolgate.ports.transforms import ArrayRemove, ArrayUnion

Record = dict[str, Any]

NAMESPACE = "backend"
"""The pack whose `users` say who is an admin; sign-ins make their records there."""
USERS = "users"
ROLES = "roles"
"""The field that gives a user more rights."""
SECRET = {"api": ("privateKey",)}
"""What never leaves the store."""
EPOCH = datetime.fromtimestamp(0, UTC)
NEVER = {"timestamp": "1970-01-01T00:00:00.000Z", "timestampUNIX": 0}


def timestamp_record(now: datetime | None = None) -> Record:
    """A point in time, as records write it."""
    now = now or datetime.now(UTC)
    text = now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"timestamp": text, "timestampUNIX": int(now.timestamp())}


NO_SUBSCRIPTION: Record = {
    "product": {"id": "basic", "name": "Basic"},
    "status": "active",
    "expires": NEVER,
    "trial": {"claimed": False, "expires": NEVER},
    "cancellation": {"pending": False, "date": NEVER},
    "payment": {
        "processor": None,
        "orderId": None,
        "resourceId": None,
        "frequency": None,
        "price": 0,
        "startDate": NEVER,
        "updatedBy": {"event": None, "date": NEVER},
    },
}
NOBODY_KNOWN: Record = {
    "birthday": NEVER,
    "gender": None,
    "location": {"country": None, "region": None, "city": None},
    "company": {"name": None, "position": None},
    "telephone": {"countryCode": None, "national": None},
}
NOT_SEEN: Record = {
    "geolocation": {
        "ip": None,
        "continent": None,
        "country": None,
        "region": None,
        "city": None,
        "latitude": None,
        "longitude": None,
    },
    "client": {
        "language": None,
        "mobile": None,
        "device": None,
        "platform": None,
        "browser": None,
        "vendor": None,
        "userAgent": None,
        "url": None,
    },
}
NOT_ASKED: Record = {"status": None, "source": None, "updated": NEVER}
"""Consent that was neither given nor revoked."""
NOT_USED: Record = {"monthly": 0, "daily": 0, "total": 0, "last": {"id": None, **NEVER}}
"""How often a metric was used."""


def new_record(
    uid: str, email: str | None = None, name: str | None = None, now: datetime | None = None
) -> Record:
    """The record of a user who signs in for the first time, with every field that one has."""
    created = timestamp_record(now)
    first, _, last = (name or "").strip().partition(" ")
    record: Record = {
        "auth": {"uid": uid, "email": email, "temporary": False},
        "subscription": NO_SUBSCRIPTION,
        "roles": {
            "admin": False,
            "betaTester": False,
            "developer": False,
            "vip": False,
            "blogger": False,
        },
        "flags": {"signupProcessed": False},
        "affiliate": {"code": None, "referrals": []},
        "metadata": {"created": created, "updated": created},
        "activity": NOT_SEEN,
        "api": {"clientId": None},
        "usage": {"requests": NOT_USED},
        "personal": {
            "name": {"first": first or None, "last": last.strip() or None},
            **NOBODY_KNOWN,
        },
        "oauth2": {},
        "attribution": {"affiliate": {"code": None, "date": NEVER}, "utm": {}},
        "consent": {"legal": NOT_ASKED, "marketing": NOT_ASKED},
    }
    return deepcopy(record)  # whoever gets it may change it


def complete_record(uid: str, record: Record | None) -> Record:
    """The whole record: what is stored over the defaults, without secrets."""
    complete = _merge(new_record(uid, now=EPOCH), record or {})
    _take_email_from_the_top(complete)
    return without_secrets(complete)


def without_secrets(record: Mapping[str, Any]) -> Record:
    """The record as others may see it."""
    return {
        name: _without(SECRET[name], value) if name in SECRET else value
        for name, value in record.items()
        if name in SECRET or not holds_secret(name)
    }


def _without(secret: tuple[str, ...], value: Any) -> Any:
    """A map, or those of a list, without what is secret in it."""
    if isinstance(value, list):
        return [_without(secret, one) for one in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    held = cast("Record", value)
    return {name: one for name, one in held.items() if name.partition(".")[0] not in secret}


def secret_out_of_place(record: Mapping[str, Any]) -> bool:
    """Whether a secret is spelled otherwise than as a field of a map: with dots, or in a list.

    Nobody is let in by such a one; but whoever flattens records, or writes them flat, means it.
    """
    return any(
        _out_of_place(SECRET[name], value) if name in SECRET else holds_secret(name)
        for name, value in record.items()
    )


def _out_of_place(secret: tuple[str, ...], value: Any) -> bool:
    if isinstance(value, ArrayUnion | ArrayRemove):
        value = list(value.values)
    if isinstance(value, dict):
        held = cast("Record", value)
        value = {name: one for name, one in held.items() if name not in secret}
    return _without(secret, value) != value


def holds_secret(field: str) -> bool:
    """Whether a dotted path is that of a secret, of what it is in, or of what is in it.

    Who may compare or order by such a field finds out what is there, step by step.
    """
    name, _, rest = field.partition(".")
    return name in SECRET and (not rest or rest.partition(".")[0] in SECRET[name])


def is_of_users(path: str) -> bool:
    """Whether a path, of a collection or a document, is that of users or of what is below them."""
    return path.partition("/")[0] == USERS


def first_record(
    uid: str, email: str | None = None, name: str | None = None, now: datetime | None = None
) -> Record:
    """A new user's record with the ids that are made once. It has no private key yet."""
    record = new_record(uid, email, name, now)
    record["api"]["clientId"] = secrets.token_hex(16)
    record["affiliate"]["code"] = secrets.token_hex(4)
    return record


def _take_email_from_the_top(user: Record) -> None:
    """Applications without `auth` in their records keep the address beside the name."""
    email, auth = user.get("email"), user["auth"]
    if not isinstance(email, str) or not isinstance(auth, dict):
        return
    sign_in = cast("Record", auth)
    if email and not sign_in.get("email"):
        user["auth"] = sign_in | {"email": email}


def is_admin(record: Record | None) -> bool:
    """Whether the record makes its user an admin; nothing but a plain true does."""
    roles = (record or {}).get(ROLES)
    return isinstance(roles, dict) and cast("Record", roles).get("admin") is True


def _merge(under: Record, over: Record) -> Record:
    merged = dict(under)
    for name, value in over.items():
        below = merged.get(name)
        if isinstance(below, dict) and isinstance(value, dict):
            merged[name] = _merge(cast("Record", below), cast("Record", value))
        else:
            merged[name] = value
    return merged

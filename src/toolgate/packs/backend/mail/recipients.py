"""Who gets a mail: addresses, uids and records of both, each person once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.packs.backend.mail.addresses import MAX_NAME, Address, BadAddress, checked_address
from toolgate.ports.documents import DocumentReader
from toolgate.ports.rules import broken_id_rule
from toolgate.ports.users import USERS

FIELDS = ("to", "cc", "bcc")
"""Who is in two of them stays in the first."""
MAX_RECIPIENTS = 1000
BLANK: tuple[Any, ...] = (None, "", [])
SHOWN = 5
"""Uids that an error names."""
NO_RECIPIENT = "Parameter to is required with at least one email"


@dataclass(slots=True)
class Recipients:
    """Addresses by field."""

    to: list[Address] = field(default_factory=list[Address])
    cc: list[Address] = field(default_factory=list[Address])
    bcc: list[Address] = field(default_factory=list[Address])
    skipped: list[str] = field(default_factory=list[str])
    """Uids of nobody who has an address."""
    _keys: set[str] = field(default_factory=set[str], init=False)

    def __len__(self) -> int:
        return len(self.to) + len(self.cc) + len(self.bcc)

    def every(self) -> Iterator[tuple[str, Address]]:
        """Each address with its field."""
        yield from (("to", one) for one in self.to)
        yield from (("cc", one) for one in self.cc)
        yield from (("bcc", one) for one in self.bcc)

    def add(self, name: str, address: Address) -> None:
        """Add an address, unless that person gets the mail anyway."""
        if address.key not in self._keys:
            self._keys.add(address.key)
            getattr(self, name).append(address)


async def find_recipients(documents: DocumentReader, given: dict[str, Any]) -> Recipients:
    """The recipients that arguments name; raises `InvalidArguments` where one is no address."""
    named = ((name, *entry) for name in FIELDS for entry in _entries(name, given.get(name)))
    entries = list(islice(named, MAX_RECIPIENTS + 1))
    if len(entries) > MAX_RECIPIENTS:
        message = f"There are more recipients than the limit of {MAX_RECIPIENTS}."
        step = "Make a campaign of it (create_campaign)."
        raise InvalidArguments([Problem("to", "range", f"{message} {step}")])
    people, problems = list[tuple[str, Address | str]](), list[Problem]()
    for name, where, one in entries:
        if one in BLANK:
            continue
        try:
            people.append((name, _address_or_uid(one)))
        except BadAddress as problem:
            problems.append(Problem(where, "format", f"{where} {problem}"))
    if problems:
        raise InvalidArguments(problems)
    found = await _resolve(documents, people)
    if not found.to:
        raise InvalidArguments([Problem("to", "missing", NO_RECIPIENT + _not_found(found.skipped))])
    return found


def _not_found(uids: Sequence[str]) -> str:
    """Which uids are of nobody who has an address; a few of them."""
    if not uids:
        return ""
    names = ", ".join(one[:MAX_NAME] for one in uids[:SHOWN])
    more = f" and {len(uids) - SHOWN} more" if len(uids) > SHOWN else ""
    return f"; no user {names}{more} with an email was found"


async def _resolve(
    documents: DocumentReader, people: Sequence[tuple[str, Address | str]]
) -> Recipients:
    uids = list(dict.fromkeys(one for _, one in people if isinstance(one, str)))
    records = await documents.get_many([(USERS, uid) for uid in uids])
    users = {uid: address_of_user(record) for uid, record in zip(uids, records, strict=True)}
    found, unknown = Recipients(), dict[str, None]()
    for name in FIELDS:
        for one in (one for where, one in people if where == name):
            address = users[one] if isinstance(one, str) else one
            if address is not None:
                found.add(name, address)
            elif isinstance(one, str):
                unknown[one] = None
    found.skipped.extend(unknown)
    return found


def _entries(name: str, given: Any) -> Iterator[tuple[str, Any]]:
    """Each recipient that an argument names, and where it stands; those left blank, too."""
    if isinstance(given, list) and given:
        for number, one in enumerate(cast("list[Any]", given)):
            yield from _entries(f"{name}[{number}]", one)
    else:
        yield name, given


def _address_or_uid(one: Any) -> Address | str:
    if isinstance(one, dict):
        record = cast("dict[str, Any]", one)
        email, name = record.get("email"), record.get("name")
        if not isinstance(email, str) or not (name is None or isinstance(name, str)):
            raise BadAddress("must have an email and may have a name, both texts")
        return checked_address(email, name)
    if not isinstance(one, str):
        raise BadAddress("must be an email address, a uid or an object {email, name}")
    if "@" in one:
        return checked_address(one)
    if not one.isprintable() or broken_id_rule(one) is not None:
        raise BadAddress("is neither an email address nor a uid")
    return one


def address_of_user(record: dict[str, Any] | None) -> Address | None:
    """The address in a user's record, with the first name."""
    if record is None:
        return None
    auth = record.get("auth")
    email = cast("dict[str, Any]", auth).get("email") if isinstance(auth, dict) else None
    email = email or record.get("email")
    try:
        return checked_address(email, _first_name(record)) if isinstance(email, str) else None
    except BadAddress:
        return None


def _first_name(record: dict[str, Any]) -> str | None:
    personal = record.get("personal")
    name: Any = cast("dict[str, Any]", personal).get("name") if isinstance(personal, dict) else None
    if isinstance(name, dict):
        name = cast("dict[str, Any]", name).get("first")
    if not isinstance(name, str) or not name.strip():
        return None
    first = name.split()[0][:MAX_NAME]
    return first if first.isprintable() else None

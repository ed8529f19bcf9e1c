"""E-mail addresses: whether one is written like one, and the name that one gives away."""

import re
from dataclasses import dataclass

from toolgate.packs.backend.mail.addresses import normalised
from toolgate.packs.backend.marketing.domains import known

LOCAL = re.compile(r"[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*", re.ASCII)
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
LAST_LABEL = re.compile(r"[a-z]{2,63}|xn--[a-z0-9-]{2,59}", re.ASCII)
MAX_LOCAL, MAX_DOMAIN, MAX_ADDRESS = 64, 253, 254
SEPARATORS = re.compile(r"[._-]+")
DIGITS_AT_THE_END = re.compile(r"[0-9]+$", re.ASCII)
MIN_NAME, MAX_NAME, LONGEST_ALONE = 2, 20, 9
BEGINNING = re.compile(
    r"[aeiouy]|.[aeiouy]|(bl|br|ch|cl|cr|dr|fl|fr|gl|gr|kl|kr|kn|ph|pl|pr|sh|sl|sm|sn|sp|st|sv|sw"
    r"|th|tr|tw|vl|wh)[aeiouyr]"
)
"""How a first name begins."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address, lower-cased; a domain of other letters in its ASCII form."""

    local: str
    domain: str

    def __str__(self) -> str:
        return f"{self.local}@{self.domain}"


def address_of(text: str) -> Address | None:
    """The address that a text is; None where it is none."""
    local, at, domain = normalised(text).rpartition("@")
    if not at or not LOCAL.fullmatch(local) or len(local) > MAX_LOCAL:
        return None
    labels = domain.split(".")
    if len(labels) < 2 or not LAST_LABEL.fullmatch(labels[-1]) or len(domain) > MAX_DOMAIN:
        return None
    if not all(map(LABEL.fullmatch, labels)) or len(local) + 1 + len(domain) > MAX_ADDRESS:
        return None
    return Address(local, domain)


def base_of(local: str) -> str:
    """A local part without what comes after a plus."""
    return local.partition("+")[0]


@dataclass(frozen=True, slots=True)
class InferredName:
    """A name that was read out of an address."""

    first: str
    last: str | None


def name_in(address: Address) -> InferredName | None:
    """The name that an address gives away: `jane.doe@…` does, `jd1984@…` and `sales@…` do not."""
    parts = SEPARATORS.split(DIGITS_AT_THE_END.sub("", base_of(address.local)))
    parts = [one for one in parts if one]
    if not parts or not all(map(_is_name, parts[:1] + parts[-1:])) or parts[0] in known("offices"):
        return None
    first, last = parts[0].capitalize(), parts[-1].capitalize() if len(parts) > 1 else None
    # One word alone is often initials and a surname, as in `jdoe`.
    if last is None and (len(first) > LONGEST_ALONE or not BEGINNING.match(parts[0])):
        return None
    return InferredName(first, last)


def _is_name(word: str) -> bool:
    has_vowel = bool(set(word) & set("aeiouy"))
    return word.isalpha() and has_vowel and MIN_NAME <= len(word) <= MAX_NAME

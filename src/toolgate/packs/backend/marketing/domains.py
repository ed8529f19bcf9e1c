"""Domains that are not those of a person's mailbox, and those that are often misspelled."""

import tomllib
from functools import cache
from importlib import resources

LONG = 10
"""Characters of a domain in which two mistakes still leave no doubt what was meant."""


@cache
def known(name: str) -> frozenset[str]:
    """A list of `addresses.toml`."""
    return frozenset(_lists()[name])


@cache
def _lists() -> dict[str, list[str]]:
    file = resources.files(__package__ or "") / "addresses.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


@cache
def _disposable() -> frozenset[str]:
    # Only who adds contacts pays for ten thousand names.
    from disposable_email_domains import blocklist  # noqa: PLC0415

    return (frozenset(blocklist) | known("disposable")) - known("misspelled")


def is_disposable(domain: str) -> bool:
    """Whether mailboxes there last for minutes; also below such a domain."""
    return _is_below(domain, _disposable())


def is_social_or_corporate(domain: str) -> bool:
    """Whether the domain belongs to a network or a large company."""
    return _is_below(domain, known("social_or_corporate"))


def _is_below(domain: str, domains: frozenset[str]) -> bool:
    labels = domain.split(".")
    return any(".".join(labels[first:]) in domains for first in range(len(labels) - 1))


def suggestion_for(domain: str) -> str | None:
    """The well-known domain that a misspelled one was meant to be."""
    mailboxes = _lists()["mailboxes"]
    if domain in mailboxes:
        return None
    near = [(_distance(domain, one), rank, one) for rank, one in enumerate(mailboxes)]
    mistakes, _, meant = min(near)
    return meant if mistakes <= (2 if len(meant) >= LONG else 1) else None


def _distance(left: str, right: str) -> int:
    """Letters to add, leave out, replace or swap with their neighbour, at least."""
    if abs(len(left) - len(right)) > 2:
        return 3
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, one in enumerate(left, 1):
        above, row = row, [i]
        for j, other in enumerate(right, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (one != other))
            if i > 1 and j > 1 and one == right[j - 2] and left[i - 2] == other:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before = above
    return row[-1]

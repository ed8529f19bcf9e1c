"""What is asked of a directory of accounts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

PAGE = 100
"""Accounts at once."""


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody who can sign in."""

    uid: str
    email: str | None = None
    name: str | None = None
    created: datetime | None = None
    anonymous: bool = False
    """Whether nobody knows who it is."""


@dataclass(frozen=True, slots=True)
class AccountPage:
    """Some accounts, and where to go on."""

    accounts: Sequence[Account]
    next_token: str | None
    """None after the last page."""


class Directory(Protocol):
    """Lists accounts in an order that stays."""

    async def page(self, token: str | None) -> AccountPage:
        """The accounts from here on, at most `PAGE`; from the beginning without a token.

        Raises `StoreUnavailable` where it does not answer.
        """
        ...

"""Ways for a person to sign in, one a file.

A provider sends the browser away and reads what it brings back. Signing in with the admin key
needs none: that page is ours.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Profile:
    """Who signed in, as the provider proves it."""

    uid: str
    email: str | None = None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class SignInStart:
    """Where to send the browser, and what to remember until it is back."""

    url: str
    remembered: Mapping[str, str]


class SignInFailed(Exception):
    """The person could not be signed in; the message is fit for a page."""


class ProviderUnavailable(SignInFailed):
    """Not the person's fault: whom we have to ask does not answer as it should."""


class Provider(Protocol):
    """One way to sign in."""

    async def begin(self, state: str, back: str) -> SignInStart:
        """Start: `state` comes back in the query of `back`, an absolute address of ours."""
        ...

    async def finish(
        self, query: Mapping[str, str], remembered: Mapping[str, str], back: str
    ) -> Profile:
        """Read what the browser brought back; raise `SignInFailed` unless it proves a person."""
        ...

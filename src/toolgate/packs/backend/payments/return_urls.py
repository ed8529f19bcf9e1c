"""Where a portal page may send a user back to."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from toolgate.packs.backend.payments.preconditions import refusal

MAX_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class ReturnUrls:
    """Addresses of the server itself, and of hosts that a setting names."""

    base_url: str
    hosts: frozenset[str]

    def checked(self, url: str | None) -> str:
        """The address, or the server's own where none is given; raises unless it is allowed."""
        if not url:
            return self.base_url
        own = urlsplit(self.base_url)
        try:
            parts = urlsplit(url)
            place = (parts.scheme, parts.hostname, parts.port)
        except ValueError:
            raise self._refusal("is not an address") from None
        if len(url) > MAX_CHARACTERS or not url.isprintable() or "\\" in url or " " in url:
            raise self._refusal("is too long, or has characters that an address has not")
        if parts.username is not None or parts.password is not None:
            raise self._refusal("must not hold a user or a password")
        if place == (own.scheme, own.hostname, own.port):
            return url
        if parts.scheme == "https" and (parts.hostname or "").lower() in self.hosts:
            return url
        raise self._refusal("leads to no address that is allowed")

    def _refusal(self, problem: str) -> Exception:
        allowed = ", ".join(sorted({self.base_url, *(f"https://{one}" for one in self.hosts)}))
        return refusal(
            "returnUrl",
            f"returnUrl {problem}. It must be a whole address that begins with one of: {allowed} "
            "(setting payments.return_hosts)",
        )

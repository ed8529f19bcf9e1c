"""Who asks for tokens: clients, by registration or by a document of their own."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """An application that wants to act for a person; always a public client."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    uri: str | None = None


class BadClient(ValueError):
    """There is no such client, or what it says of itself cannot be used; fit for a page."""

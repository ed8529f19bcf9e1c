"""What the pack's handlers may ask."""

from dataclasses import dataclass

from toolgate.ports.documents import DocumentStore


@dataclass(frozen=True, slots=True)
class AppDataWorld:
    """The application's documents."""

    documents: DocumentStore

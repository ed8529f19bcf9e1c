"""What the pack's handlers may ask."""

from dataclasses import dataclass

from toolgate.packs.appdata.collections import Collections
from toolgate.ports.documents import DocumentStore


@dataclass(frozen=True, slots=True)
class AppDataWorld:
    """The application's documents, and which of them there are to the tools."""

    documents: DocumentStore
    collections: Collections

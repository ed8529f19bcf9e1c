"""What the pack's handlers may ask."""

from dataclasses import dataclass

from toolgate.packs.network.records.store import Records
from toolgate.packs.network.settings import NetworkSettings
from toolgate.ports.documents import DocumentStore
from toolgate.ports.tree import TreeStore


@dataclass(frozen=True, slots=True)
class NetworkWorld:
    """The two databases."""

    documents: DocumentStore
    """Firestore, or what is in its place."""
    tree: TreeStore
    """The Realtime Database, or what is in its place."""
    records: Records
    """Agents, tasks and skills: some of the documents."""
    settings: NetworkSettings

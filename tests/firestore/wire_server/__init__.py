"""A Firestore server for tests: the real protocol, Firestore's own rules, in memory.

It knows what the adapter uses (BatchGetDocuments, RunQuery, ListCollectionIds, BeginTransaction,
Commit, Rollback) and refuses the rest. It works on the values of the protocol and shares no code
with `toolgate.ports`, so that each checks the other.
"""

from tests.firestore.wire_server.filters import passes
from tests.firestore.wire_server.refusals import Refusal
from tests.firestore.wire_server.server import WireServer

__all__ = ["Refusal", "WireServer", "passes"]

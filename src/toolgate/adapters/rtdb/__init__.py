"""A tree in Firebase Realtime Database, over its REST protocol.

`store` is the port, `rest` one request and what its refusal means, `accounts` the access tokens of
a service account, `events` the stream of changes.
"""

from toolgate.adapters.rtdb.store import RealtimeDatabase

__all__ = ["RealtimeDatabase"]

"""JSON and the values of Firestore."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from google.api_core.datetime_helpers import DatetimeWithNanoseconds
from google.auth.credentials import AnonymousCredentials
from google.cloud.firestore import AsyncClient, GeoPoint
from google.cloud.firestore_v1 import _helpers
from google.cloud.firestore_v1.vector import Vector
from hypothesis import given
from hypothesis import strategies as st

from toolgate.adapters.firestore import FirestoreDocuments
from toolgate.adapters.firestore.values import to_json, to_message
from toolgate.ports.documents import (
    Query,
)

google_helpers: Any = _helpers

plain = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, "", "1", "é"])
deep = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner),
    max_leaves=4,
)


def client_of(store: Any) -> Any:
    """The Google client inside, to see what it was made of."""
    return store._connection.client


def test_values_json_lacks_become_text() -> None:
    client = AsyncClient(project="p", credentials=AnonymousCredentials())
    values = {
        "time": datetime(2025, 1, 15, 10, 30, tzinfo=UTC),
        "micro": datetime(2025, 1, 15, 10, 30, 0, 120_000, tzinfo=UTC),
        "nano": DatetimeWithNanoseconds(2025, 1, 15, 10, 30, nanosecond=1, tzinfo=UTC),
        "early": datetime(1, 1, 1, tzinfo=UTC),
        "bytes": b"\x00\xff",
        "place": GeoPoint(59.5, -18.25),
        "vector": Vector([1.0, 2.0]),
        "reference": client.document("users/abc123"),
        "floats": [float("nan"), float("inf"), float("-inf"), 1.5],
        "nested": [{"deep": [b"x"]}],
    }
    assert to_json(google_helpers.encode_value(values)._pb) == {
        "time": "2025-01-15T10:30:00Z",
        "micro": "2025-01-15T10:30:00.12Z",
        "nano": "2025-01-15T10:30:00.000000001Z",
        "early": "0001-01-01T00:00:00Z",
        "bytes": "AP8=",
        "place": {"latitude": 59.5, "longitude": -18.25},
        "vector": [1.0, 2.0],
        "reference": "users/abc123",
        "floats": ["NaN", "Infinity", "-Infinity", 1.5],
        "nested": [{"deep": ["eA=="]}],
    }


@given(deep)
def test_json_comes_back_as_it_was(value: Any) -> None:
    found = to_json(to_message(value))
    assert json.dumps(found, sort_keys=True) == json.dumps(value, sort_keys=True)


def test_what_is_not_json_is_refused() -> None:
    with pytest.raises(ValueError, match="Decimal is not JSON"):
        to_message({"n": [Decimal("1.50")]})


@pytest.mark.anyio
async def test_values_others_stored_come_back_as_json(store: FirestoreDocuments) -> None:
    """Documents written by the application itself hold what JSON cannot say."""
    client = client_of(store)
    await client.document("c/one").create(
        {
            "at": datetime(2025, 1, 15, 10, 30, 0, 123_456, tzinfo=UTC),
            "where": GeoPoint(1, 2),
            "owner": client.document("users/abc123"),
            "raw": [b"\x00"],
            "deep": {"nan": float("nan"), "vector": Vector([1, 2])},
        }
    )
    expected = {
        "at": "2025-01-15T10:30:00.123456Z",
        "where": {"latitude": 1.0, "longitude": 2.0},
        "owner": "users/abc123",
        "raw": ["AA=="],
        "deep": {"nan": "NaN", "vector": [1.0, 2.0]},
    }
    found = await store.get("c", "one")
    assert found == expected
    assert json.loads(json.dumps(found, allow_nan=False)) == expected
    assert [one.fields for one in await store.query(Query("c"))] == [expected]

"""Servers to reach, and names for them."""

from collections.abc import Iterator

import pytest
from tests.identity.publisher import Publisher, publishing


@pytest.fixture
def published() -> Iterator[Publisher]:
    with publishing() as publisher:
        yield publisher


@pytest.fixture
def elsewhere() -> Iterator[Publisher]:
    """A server of another origin."""
    with publishing() as publisher:
        yield publisher

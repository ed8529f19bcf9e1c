"""What several tests of identity need."""

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from tests.conformance.node import NodeUnavailable
from tests.identity.oidc.provider import running

from toolgate.gate import counting


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """The address of a real OpenID provider, npm's oidc-provider."""
    try:
        with running() as url:
            yield url
    except NodeUnavailable as reason:
        pytest.skip(f"oidc-provider: {reason}")


@pytest.fixture
def same_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything that is counted happens in one minute, however long it takes."""
    monkeypatch.setattr(counting, "time", SimpleNamespace(time=lambda: 1_800_000_000.0))

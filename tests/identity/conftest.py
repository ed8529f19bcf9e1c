"""What several tests of identity need."""

from collections.abc import Iterator

import pytest
from tests.conformance.node import NodeUnavailable
from tests.identity.oidc.provider import running


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """The address of a real OpenID provider, npm's oidc-provider."""
    try:
        with running() as url:
            yield url
    except NodeUnavailable as reason:
        pytest.skip(f"oidc-provider: {reason}")

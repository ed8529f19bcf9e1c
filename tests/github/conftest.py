"""What every test with GitHub shares."""

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.github.emulator import GitHub, github
from tests.github.faulty import FaultyGitHub, faulty

from toolgate.outbound.client import Outbound

__all__ = ["github"]


@pytest.fixture
def failing(github: GitHub) -> Iterator[FaultyGitHub]:
    with faulty(github) as proxy:
        yield proxy


@pytest.fixture
async def outbound() -> AsyncIterator[Outbound]:
    async with Outbound() as one:
        yield one

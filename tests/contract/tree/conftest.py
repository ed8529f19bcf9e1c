"""The tree stores the contract runs over: one parameter each."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contract.tree.stores import KINDS, Tree, opened_tree


@pytest.fixture(params=KINDS)
async def tree(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Tree]:
    def postgres() -> str:
        return request.getfixturevalue("postgres_server")

    async with opened_tree(request.param, tmp_path, postgres) as opened:
        yield opened

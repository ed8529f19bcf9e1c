"""The tree stores the contract runs over: one parameter each."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contract.tree.stores import KINDS, Tree, opened_tree, rtdb_server

__all__ = ["rtdb_server"]


@pytest.fixture(params=KINDS)
async def tree(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Tree]:
    async with opened_tree(request.param, tmp_path, request.getfixturevalue) as opened:
        yield opened

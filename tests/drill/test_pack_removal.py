"""Without one of its packs, the rest of the tree passes its own tests."""

import os
from pathlib import Path

import pytest
from tests.packs.removal import tree_without


@pytest.mark.timeout(4 * 3600)
def test_the_rest_passes_its_own_tests(tmp_path: Path) -> None:
    removed = os.environ.get("WITHOUT", "orchestrator")
    tree = tree_without(removed, tmp_path / "tree")
    tree.check_imports()
    assert tree.test_all(workers=int(os.environ.get("WORKERS", "2"))) == 0

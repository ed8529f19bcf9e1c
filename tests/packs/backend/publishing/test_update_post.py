"""Posts are changed: the text alone, and never over somebody else's change."""

import asyncio
from typing import Any

import pytest
from tests.packs.backend.publishing.conftest import Repository, front_matter

from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

PLACE = "src/_posts/2024/guest/2024-02-03-a.md"
ODD = (
    b"---\r\n### ALL ###\r\nlayout:   post   # why not\r\n\r\nunknown: {z: 1, a: [2,3]}\r\n"
    b'post:\r\n  tags: ["x"]\r\n  title:   "Old: title"   # keep me\r\n  id: 007\r\n---\r\n'
)


async def update(kit: Kit, **arguments: Any) -> Any:
    outcome = await kit.call("update_post", **arguments)
    assert outcome.status == 200, outcome.text
    return outcome.body


async def test_the_body_changes_and_the_front_matter_stays_to_the_byte(
    kit: Kit, repository: Repository
) -> None:
    repository.add(PLACE, ODD + b"\r\nOld text\r\n")
    commits = repository.commits()
    done = await update(kit, url="https://site.example/blog/a", body="New\ntext --- 1\n")
    assert done["path"] == PLACE
    assert done["changed"] is True
    assert repository.read(PLACE) == ODD + b"\r\nNew\r\ntext --- 1\r\n"
    assert repository.commits() == commits + 1
    assert repository.message().startswith("Update post: a\n\nToolgate-Call: ")


async def test_a_title_is_spliced_in(kit: Kit, repository: Repository) -> None:
    repository.add(PLACE, ODD + b"\r\nOld\r\n")
    await update(kit, url="a", body="Old", title='New: "one"\n---')
    wanted = ODD.replace(b'"Old: title"', b'"New: \\"one\\"\\n---"') + b"\r\nOld\r\n"
    assert repository.read(PLACE) == wanted


@pytest.mark.parametrize(
    "title",
    [
        b"plain",
        b"'single'",
        b"|\n  Block\n  text",
        b">-\n  folded\n  text",
        b"",
        b"plain\n  goes on",
    ],
)
async def test_a_title_in_any_style_is_replaced(
    kit: Kit, repository: Repository, title: bytes
) -> None:
    content = b"---\ntitle: " + title + b"\nnext: 1 # c\n---\n\nText\n"
    repository.add(PLACE, content)
    outcome = await kit.call("update_post", url="a", body="Text", title="New")
    if title == b"":
        assert outcome.status in (200, 409)
    if outcome.status == 200:
        assert front_matter(repository.read(PLACE)) == {"title": "New", "next": 1}
        assert repository.read(PLACE).endswith(b"\nnext: 1 # c\n---\n\nText\n")
    else:
        assert repository.read(PLACE) == content


@pytest.mark.parametrize(
    "content",
    [
        b"---\nother: 1\n---\n\nText\n",
        b"---\ntitle: [a\n---\n\nText\n",
        b"---\ntitle: &x old\nother: *x\n---\n\nText\n",
        b"---\ntitle: {a: 1}\n---\nText\n",
        b"No front matter\n",
    ],
)
async def test_a_title_that_cannot_be_changed_is_told_and_nothing_changes(
    kit: Kit, repository: Repository, content: bytes
) -> None:
    repository.add(PLACE, content)
    outcome = await kit.call("update_post", url="a", body="New", title="New")
    assert outcome.status == 409
    assert PLACE in outcome.text
    assert repository.read(PLACE) == content


async def test_only_the_exact_url_is_found(kit: Kit, repository: Repository) -> None:
    names = ["2024-02-03-ab.md", "2024-02-03-x-a.md", "a.md", "2024-02-03-a.txt"]
    for name in names:
        repository.add(f"src/_posts/2024/guest/{name}", b"---\ntitle: T\n---\n\nText\n")
    repository.add("README.md", b"Read me\n")
    commits = repository.commits()
    for url in ("/blog/a", "a", "../../README", "/blog/../../README", "README.md", "b", "%00"):
        outcome = await kit.call("update_post", url=url, body="New")
        assert (outcome.status, outcome.text) == (404, outcome.text)
        assert "Post not found" in outcome.text
    assert repository.commits() == commits
    await update(kit, url="/blog/ab", body="New")


async def test_a_post_of_another_folder_is_found_by_its_post_path(
    kit: Kit, repository: Repository
) -> None:
    place = PLACE.replace("guest", "team/news")
    repository.add(place, b"---\ntitle: T\n---\n\nText\n")
    assert (await kit.call("update_post", url="a", body="New", postPath="guest")).status == 404
    assert (await update(kit, url="a", body="New", postPath="team/news"))["path"] == place
    assert (await kit.call("update_post", url="a", body="x", postPath="../x")).status == 400


async def test_the_same_text_again_is_no_commit(kit: Kit, repository: Repository) -> None:
    await update(kit, url="welcome", body="Text")
    commits = repository.commits()
    assert (await update(kit, url="welcome", body="Text"))["changed"] is False
    assert repository.commits() == commits


async def test_parallel_edits_are_a_conflict_and_no_loss(kit: Kit, repository: Repository) -> None:
    commits = repository.commits()
    calls = [kit.call("update_post", url="welcome", body=f"Text {number}") for number in range(4)]
    outcomes = await asyncio.gather(*calls)
    done = [one for one in outcomes if one.status == 200]
    assert {one.status for one in outcomes} <= {200, 409}
    assert len(done) >= 1
    assert repository.commits() == commits + len(done)


async def test_a_change_of_somebody_else_between_reading_and_writing_is_a_conflict(
    kit: Kit, repository: Repository
) -> None:
    forge = kit.app.worlds["backend"].world.posts.forge
    place = "src/_posts/2025/guest/2025-01-15-welcome.md"
    theirs = repository.read(place) + b"Theirs\n"
    commit, done = forge.commit, []

    async def late(new: Any) -> str:
        if not done:
            done.append(repository.add(place, theirs))
        return await commit(new)

    forge.commit = late
    outcome = await kit.call("update_post", url="welcome", body="Mine")
    assert outcome.status == 409
    assert "changed by somebody else" in outcome.text
    assert repository.read(place) == theirs


async def test_a_change_of_another_file_in_between_is_no_conflict(
    kit: Kit, repository: Repository
) -> None:
    forge = kit.app.worlds["backend"].world.posts.forge
    commit, done = forge.commit, []

    async def late(new: Any) -> str:
        if not done:
            done.append(repository.add("other.txt", b"1"))
        return await commit(new)

    forge.commit = late
    await update(kit, url="welcome", body="Mine")
    assert repository.read("other.txt") == b"1"


async def test_two_posts_with_one_url_are_told(kit: Kit, repository: Repository) -> None:
    for year in ("2023", "2024"):
        repository.add(PLACE.replace("2024", year), b"---\ntitle: T\n---\n\nText\n")
    outcome = await kit.call("update_post", url="a", body="New")
    assert outcome.status == 409
    assert "Several posts have this url" in outcome.text


async def test_without_a_post_path_a_post_is_found_in_any_folder(
    kit: Kit, repository: Repository
) -> None:
    content = b"---\ntitle: T\n---\n\nText\n"
    news = PLACE.replace("guest", "team/news")
    repository.add(news, content)
    assert (await update(kit, url="/blog/a", body="New"))["path"] == news
    repository.add(PLACE, content)
    refused = await kit.call("update_post", url="a", body="x")
    assert refused.status == 409
    assert all(part in refused.body["error"] for part in (news, PLACE, "guest, team/news"))
    assert repository.read(PLACE) == content
    assert (await update(kit, url="a", body="x", postPath="guest"))["path"] == PLACE

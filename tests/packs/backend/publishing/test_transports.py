"""The same over MCP, the seed's route, `/v1/tools` and GitHub, on both databases."""

from pathlib import Path

import pytest
from tests.databases import STARTS_A_SERVER
from tests.github.emulator import OWNER, TOKEN, GitHub, github
from tests.packs.backend.publishing.conftest import Repository, opened_site
from tests.servers import Server

from toolgate.outbound.client import Outbound

__all__ = ["github"]
pytestmark = pytest.mark.anyio
ROUTE = "/backend-manager/admin/post"


async def test_the_routes_and_tools_answer_alike(server: Server) -> None:
    with server.client() as client:
        made = client.post(ROUTE, json={"title": "By route", "body": "One. Two."})
        assert made.status_code == 200, made.text
        assert made.json()["url"] == "by-route"
        again = client.post(ROUTE, json={"title": "By route", "body": "One. Two."})
        assert again.status_code == 409
        assert "update_post" in again.json()["error"]
        edit = {"url": "/blog/by-route", "body": "Three."}
        changed = client.put(ROUTE, json=edit)
        assert changed.status_code == 200, changed.text
        assert changed.json()["path"] == made.json()["path"]
        same = client.post("/v1/tools/update_post", json=edit)
        assert same.json()["changed"] is False
        missing = client.put(ROUTE, json={"url": "none", "body": "x"})
        assert (missing.status_code, missing.json()) == (404, {"error": "Post not found"})
        short = client.post(ROUTE, json={"title": "No body"})
        assert short.status_code == 400
        assert "body" in short.json()["error"]


async def test_without_a_key_nothing_is_published(server: Server) -> None:
    with server.client(Authorization="") as client:
        assert client.post(ROUTE, json={"title": "x", "body": "y"}).status_code == 401


async def test_posts_on_both_databases(
    tmp_path: Path, repository: Repository, database_url: str
) -> None:
    async with opened_site(tmp_path, database__url=database_url) as kit:
        assert (await kit.call("create_post", title="A", body="b")).status == 200
        assert (await kit.call("update_post", url="a", body="c")).status == 200
        posts = kit.app.worlds["backend"].world.posts
        assert await posts.intents.before("9999", 10) == []
    assert repository.commits() == 3


@STARTS_A_SERVER
async def test_posts_at_github(tmp_path: Path, github: GitHub) -> None:
    name = github.new_repository()
    settings = {
        "posts__url": f"github://{OWNER}/{name}",
        "github__url": github.url,
        "github__token": TOKEN,
    }
    async with opened_site(tmp_path, **settings) as kit:
        made = await kit.call("create_post", title="At GitHub", body="Text.")
        assert made.status == 200, made.text
        taken = await kit.call("create_post", title="At GitHub", body="Other.")
        assert taken.status == 409
        changed = await kit.call("update_post", url="at-github", body="New.", title="T: 2")
        assert changed.status == 200, changed.text
        assert (await kit.call("update_post", url="none", body="x")).status == 404
    async with Outbound() as outbound:
        forge = github.forge(outbound, name)
        head = await forge.head("main")
        assert head == changed.body["commit"]
        content = await forge.read(made.body["path"], head, most_bytes=10_000)
        assert content is not None
        assert content.endswith(b"---\n\nNew.\n")
        assert b"title: 'T: 2'" in content
    assert not (tmp_path / "repositories").exists()


@STARTS_A_SERVER
async def test_a_bad_token_is_told_without_it(tmp_path: Path) -> None:
    settings = {"posts__url": "github://o/r", "github__url": "http://127.0.0.1:9"}
    async with opened_site(tmp_path, **settings, github__token="ghp_secret") as kit:
        outcome = await kit.call("create_post", title="x", body="y")
        assert outcome.status == 503
        assert "GitHub cannot be reached" in outcome.text
        assert "ghp_secret" not in outcome.text


async def test_a_post_of_any_folder_over_the_route(server: Server) -> None:
    with server.client() as client:
        post = {"title": "In news", "body": "One.", "postPath": "team/news"}
        made = client.post(ROUTE, json=post).json()
        changed = client.put(ROUTE, json={"url": "in-news", "body": "Two."})
        assert (changed.status_code, changed.json()["path"]) == (200, made["path"])
        odd = client.post(ROUTE, json={**post, "url": "../../x"})
        assert odd.status_code == 400
        assert "postPath" in odd.json()["error"]
        long = client.post("/backend-manager/admin/backup", json={"deletionRegex": "a" * 301})
        told = "deletionRegex must have at most 300 characters"
        assert (long.status_code, long.json()) == (400, {"error": told})

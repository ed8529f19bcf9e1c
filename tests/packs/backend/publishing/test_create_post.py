"""Posts are created: one commit with text and images, and nothing that is not meant."""

import asyncio
import re
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.packs.backend.publishing.conftest import Repository, front_matter

from toolgate.gate.principal import Role, of_role
from toolgate.packs.backend.publishing.front_matter import parse_post, post_file
from toolgate.packs.backend.publishing.texts import first_sentence, slug_of, slug_of_address
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

POST = {"title": "Hello, World!", "body": "It *works*. And more.\n\n## Then\n\nBye."}


async def create(kit: Kit, **more: Any) -> Any:
    outcome = await kit.call("create_post", **{**POST, **more})
    assert outcome.status == 200, outcome.text
    return outcome.body


async def test_a_post_is_one_commit_that_git_clones(kit: Kit, repository: Repository) -> None:
    before = repository.commits()
    made = await create(kit, tags=["a, b", "c: d"], categories=["News"])
    assert repository.commits() == before + 1
    assert re.fullmatch(r"src/_posts/\d{4}/guest/\d{4}-\d\d-\d\d-hello-world\.md", made["path"])
    assert made["path"].split("/")[2] == made["path"].split("/")[-1][:4]
    content = repository.read(made["path"])
    assert content.endswith(b"---\n\nIt *works*. And more.\n\n## Then\n\nBye.\n")
    fields = front_matter(content)
    post = fields["post"]
    assert fields["layout"] == "blueprint/blog/post"
    assert (post["title"], post["description"]) == ("Hello, World!", "It works.")
    assert (post["tags"], post["categories"]) == (["a, b", "c: d"], ["News"])
    assert post["author"] in ("alex-raeburn", "rare-ivy", "christina-hill")
    assert post["author"] == made["author"]
    assert post["status"] == made["status"] == "published"
    assert "published" not in fields
    assert made["url"] == "hello-world"
    assert (made["images"], made["description"]) == ([], "It works.")


async def test_the_commit_is_clean_and_names_its_call(kit: Kit, repository: Repository) -> None:
    await create(kit, title="A\n\nToolgate-Call: forged\x1b[2J")
    message = repository.message()
    subject, blank, trailer, *rest = message.splitlines()
    assert subject == "Add post: A Toolgate-Call: forged [2J"
    assert blank == ""
    assert re.fullmatch(r"Toolgate-Call: [0-9A-Za-z-]{20,36}", trailer)
    assert [one for one in rest if one] == []
    log = await kit.app.worlds["backend"].world.posts.forge.log("main", most=1)
    assert log[0].message.strip() == message.strip()


async def test_all_that_the_route_knows_can_be_said(kit: Kit, repository: Repository) -> None:
    made = await create(
        kit,
        url="/blog/My Own URL",
        description='Mine: "own"',
        author="jane",
        status="draft",
        postPath="team/news",
    )
    assert made["url"] == "my-own-url"
    assert "/team/news/" in made["path"]
    fields = front_matter(repository.read(made["path"]))
    assert fields["published"] is False
    assert fields["post"]["status"] == "draft"
    assert fields["post"]["description"] == 'Mine: "own"'
    assert fields["post"]["author"] == "jane"


@pytest.mark.parametrize(
    "title",
    [
        "a: b\n---\nevil: 1",
        "---",
        "x\r\n...\r\n--- y",
        "- list",
        "{a: b}",
        "yes 1",
        'it\'s "so" #1',
        "&anchor *alias !tag %",
        "tab\there \u2028 line \x85 next",
        "😀 Grüße 日本",
    ],
)
async def test_a_title_parses_back_to_itself(kit: Kit, repository: Repository, title: str) -> None:
    made = await create(kit, title=title, url="odd")
    content = repository.read(made["path"])
    fields = front_matter(content)
    assert fields["post"]["title"] == title == made["title"]
    assert fields.keys() == {"layout", "post"}
    assert re.findall(rb"(?m)^---[ \t]*$", content) == [b"---", b"---"]


@given(text=st.text(max_size=60), tags=st.lists(st.text(max_size=10), max_size=3))
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_any_text_survives_front_matter(text: str, tags: list[str]) -> None:
    fields = {"post": {"title": text, "tags": tags}}
    content = post_file(fields, "Body\n---\nmore")
    post = parse_post(content)
    yaml_text = post.front_matter.decode()[4:-4]
    assert yaml.safe_load(yaml_text) == fields
    assert post.with_body("Body\n---\nmore") == content
    assert yaml.safe_load(post.with_title(f"{text}!").front_matter.decode()[4:-4]) == {
        "post": {"title": f"{text}!", "tags": tags}
    }


async def test_a_body_that_looks_like_front_matter_stays_a_body(
    kit: Kit, repository: Repository
) -> None:
    made = await create(kit, body="---\nlayout: evil\n---\ntext")
    content = repository.read(made["path"])
    assert front_matter(content)["layout"] == "blueprint/blog/post"
    assert content.endswith(b"---\n\n---\nlayout: evil\n---\ntext\n")


async def test_the_same_title_twice_overwrites_nothing(kit: Kit, repository: Repository) -> None:
    made = await create(kit)
    first, commits = repository.read(made["path"]), repository.commits()
    for more in ({}, {"title": "Hello: world"}, {"postPath": "other"}, {"url": "hello-world"}):
        outcome = await kit.call("create_post", **{**POST, "body": "Other.", **more})
        assert outcome.status == 409
        assert made["path"] in outcome.text
        assert "update_post" in outcome.text
    assert repository.commits() == commits
    assert repository.read(made["path"]) == first
    await create(kit, title="Hello, World! 2")


async def test_posts_at_once_are_a_commit_each(kit: Kit, repository: Repository) -> None:
    before = repository.commits()
    made = await asyncio.gather(*(create(kit, title=f"Post {number}") for number in range(5)))
    assert repository.commits() == before + 5
    clone = repository.clone()
    assert all((clone / one["path"]).exists() for one in made)
    ids = {front_matter((clone / one["path"]).read_bytes())["post"]["id"] for one in made}
    assert len(ids) == 5


async def test_of_two_posts_at_once_with_one_url_one_is_made(
    kit: Kit, repository: Repository
) -> None:
    bodies = ["one", "two", "three"]
    calls = (kit.call("create_post", title="Same", body=body) for body in bodies)
    statuses = sorted(one.status for one in await asyncio.gather(*calls))
    assert statuses == [200, 409, 409]
    assert repository.commits() == 2


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"title": "!!!"}, "title must have a letter or a digit"),
        ({"url": "///"}, "url must have a letter or a digit"),
        ({"url": "../../x"}, "url must be the last part of an address, as my-post"),
        ({"url": "https://site.example/blog/x"}, "url must be the last part of an address"),
        ({"body": " \n "}, "body must not be blank"),
        ({"body": ""}, "body"),
        ({"title": ""}, "title"),
        ({"title": "x" * 301}, "title"),
        ({"status": "gone"}, "published"),
        ({"postPath": "../../.git"}, "postPath must be up to four names with / between them"),
        ({"postPath": "/etc"}, "postPath"),
        ({"tags": "a"}, "tags"),
        ({"tags": [1]}, "tags"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
async def test_bad_input_is_told_and_changes_nothing(
    kit: Kit, repository: Repository, more: dict[str, Any], says: str
) -> None:
    before = repository.commits()
    outcome = await kit.call("create_post", **{**POST, **more})
    assert outcome.status == 400
    assert says in outcome.text
    assert repository.commits() == before


@pytest.mark.parametrize("missing", ["title", "body"])
async def test_what_is_missing_is_told(kit: Kit, missing: str) -> None:
    arguments = {name: value for name, value in POST.items() if name != missing}
    outcome = await kit.call("create_post", **arguments)
    assert outcome.status == 400
    assert missing in outcome.text


async def test_users_do_not_see_it(kit: Kit, repository: Repository) -> None:
    user = of_role(Role.USER, "key:1", "anna")
    for name in ("create_post", "update_post"):
        outcome = await kit.call(name, as_=user, **POST)
        assert outcome.status == 404
        assert f"Unknown tool: {name}" in outcome.text
    assert repository.commits() == 1


async def test_a_dry_run_is_refused_and_touches_nothing(kit: Kit, repository: Repository) -> None:
    outcome = await kit.send(
        "create_post", POST, of_role(Role.ADMIN, "admin", "anna"), dry_run=True
    )
    assert outcome.status == 403
    assert repository.commits() == 1


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("One. Two.", "One."),
        ("# Title\n\n![x](https://a/b.png)\n\nIs it **so**? Yes.", "Is it so?"),
        ("See [the docs](https://a/b) at 3.5 km. Then", "See the docs at 3.5 km."),
        ("no end", "no end"),
        ("```\ncode.\n```\n\nText!", "Text!"),
        ("# Only a heading", ""),
        ("word " * 100, ("word " * 39).strip() + "…"),
    ],
)
def test_the_description_is_the_first_sentence(body: str, sentence: str) -> None:
    assert first_sentence(body) == sentence


def test_slugs() -> None:
    assert slug_of("Hello, World!") == "hello-world"
    assert slug_of("Привет Grüße") == "privet-grusse" or slug_of("Привет Grüße")
    assert slug_of("../../etc/passwd") == "etc-passwd"
    assert len(slug_of("word " * 100)) <= 100


@pytest.mark.parametrize(
    ("address", "slug"),
    [
        ("a", "a"),
        ("blog/a", "a"),
        ("/blog/a", "a"),
        ("/blog/a/", "a"),
        ("https://site.example/blog/a?x=1#y", "a"),
        ("/blog/a.html", "a"),
        ("https://site.example/a", None),
        ("/blog/a/b", None),
        ("../../README", None),
        ("..%2f..%2fREADME", None),
        ("/blog/", None),
        ("/blog/A", None),
        ("javascript:a", None),
        ("https://[", None),
        ("a\0b", None),
        ("", None),
    ],
)
def test_which_post_an_address_means(address: str, slug: str | None) -> None:
    assert slug_of_address(address) == slug

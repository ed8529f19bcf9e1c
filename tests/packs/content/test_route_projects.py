"""The project of a route, which the headers of the request name."""

from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.packs.content.routes import SCOPED, envelope, get, project_of, refused
from tests.transports.conftest import Web, opened_web

from toolgate.packs.content.demo import COMPOST, GARDEN, PSYMETRIC

NOBODY = "00000000-0000-4000-a000-0000000000ff"
NO_PROJECT = b'{"error":{"code":"NOT_FOUND","message":"Project not found"}}'


def test_without_a_project_the_default_is_meant(admin: httpx2.Client) -> None:
    assert project_of(get(admin, "/api/entities")) == PSYMETRIC


def test_a_cookie_comes_before_the_default(admin: httpx2.Client) -> None:
    answer = get(admin, "/api/entities", cookie=f"a=b; projectId={GARDEN}; c=d")
    assert project_of(answer) == GARDEN


def test_a_slug_comes_before_the_cookie(admin: httpx2.Client) -> None:
    both = {"x_project_slug": "garden-notes", "cookie": f"projectId={PSYMETRIC}"}
    assert project_of(get(admin, "/api/entities", **both)) == GARDEN


def test_an_id_comes_before_the_slug(admin: httpx2.Client) -> None:
    every = {
        "x_project_id": GARDEN,
        "x_project_slug": "psymetric",
        "cookie": f"projectId={PSYMETRIC}",
    }
    assert project_of(get(admin, "/api/entities", **every)) == GARDEN


def test_an_entity_is_looked_for_in_the_requests_project(admin: httpx2.Client) -> None:
    for path in (f"/api/entities/{COMPOST}", f"/api/entities/{COMPOST}/graph"):
        assert get(admin, path, x_project_id=GARDEN).status_code == 200
        told = envelope(get(admin, path), 404, "NOT_FOUND")
        assert told == "Entity not found"


@pytest.mark.parametrize("path", SCOPED)
def test_an_unknown_slug_is_an_unknown_project(admin: httpx2.Client, path: str) -> None:
    by_slug = get(admin, path, x_project_slug="no-such-project")
    by_id = get(admin, path, x_project_id=NOBODY)
    by_cookie = get(admin, path, cookie=f"projectId={NOBODY}")
    for answer in (by_slug, by_id, by_cookie):
        assert (answer.status_code, answer.content) == (404, NO_PROJECT)


@pytest.mark.parametrize("slug", ["Psymetric", "psy_metric", "-psymetric", "a--b", "a b", "", "é"])
def test_a_malformed_slug_is_refused(admin: httpx2.Client, slug: str) -> None:
    headers = {b"x-project-slug": slug.encode()}
    told = refused(admin.get("/api/entities", headers=headers))
    assert told == "x-project-slug must be lower-case letters, digits and hyphens"


@pytest.mark.parametrize("wrong", ["psymetric", "", PSYMETRIC[:-1], f"{PSYMETRIC},{GARDEN}"])
def test_a_malformed_project_id_is_refused(admin: httpx2.Client, wrong: str) -> None:
    told = "projectId must be a valid UUID"
    assert refused(get(admin, "/api/entities", x_project_id=wrong)) == told
    with_slug = get(admin, "/api/entities", x_project_id=wrong, x_project_slug="psymetric")
    assert refused(with_slug) == told


def test_a_malformed_cookie_is_refused(admin: httpx2.Client) -> None:
    told = refused(get(admin, "/api/entities", cookie="projectId=psymetric"))
    assert told == "projectId must be a valid UUID"


def test_projects_are_listed_whatever_project_is_named(admin: httpx2.Client) -> None:
    every = get(admin, "/api/projects")
    for headers in ({"x_project_id": NOBODY}, {"x_project_slug": "X"}, {"cookie": "projectId=x"}):
        assert get(admin, "/api/projects", **headers).content == every.content


@pytest.mark.anyio
async def test_the_default_project_is_a_setting(tmp_path: Path) -> None:
    async with opened_web(tmp_path, content__default_project=GARDEN) as web, web.client() as client:
        assert project_of(await client.get("/api/entities")) == GARDEN


COOKIES: dict[str, list[bytes]] = {
    "alone": [b"projectId=%s"],
    "quoted": [b'projectId="%s"'],
    "among others": [b"_ga=GA1.2.3; projectId=%s; theme=dark"],
    "after an odd name": [b"a b=1; {json}=2; projectId=%s"],
    "after a value in JSON": [b'prefs={"a":1,"b":[2]}; projectId=%s'],
    "after a word": [b"flag; projectId=%s"],
    "after letters of other scripts": ["stadt=Köln; projectId=%s".encode()],
    "without spaces": [b"a=1;projectId=%s;b=2"],
    "with an end": [b"projectId=%s;"],
    "in a second header": [b"a=1", b"projectId=%s"],
    "before one with a shorter path": [b"projectId=%s; projectId=other"],
    "beside a name that ends alike": [b"xprojectId=other; projectId=%s"],
    "with an open quote before": [b'a="1; projectId=%s'],
}


@pytest.mark.anyio
@pytest.mark.parametrize("what", COOKIES)
async def test_the_project_is_read_from_a_cookie_as_browsers_send_it(web: Web, what: str) -> None:
    sent = [("Cookie", one.replace(b"%s", GARDEN.encode())) for one in COOKIES[what]]
    key = ("Authorization", f"Bearer {web.keys['admin']}")
    async with web.client(None) as client:
        headers: Any = [key, *sent]
        request = httpx2.Request("GET", "http://127.0.0.1/api/entities", headers=headers)
        answer = await client.send(request)
    assert answer.status_code == 200, answer.text
    assert {one["projectId"] for one in answer.json()["data"]} == {GARDEN}

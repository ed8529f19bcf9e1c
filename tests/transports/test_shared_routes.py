"""Two packs below one path: every route leads to its tool, and what is unknown is told plainly."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.gate.tools import offer
from tests.transports.conftest import Web, opened_web
from tests.transports.routed import routed

from toolgate.cli.problems import ExitCode, explain
from toolgate.gate.catalogue import AnyTool, Catalogue, DuplicateRoute
from toolgate.gate.principal import Role
from toolgate.gate.tool import Input, NoArguments
from toolgate.transports.refusals import NOTHING_THERE

pytestmark = pytest.mark.anyio


class Id(Input):
    id: str


def at(path: str, method: str = "GET", pack: str = "orchestrator", name: str = "") -> AnyTool:
    takes = Id if "{id}" in path else NoArguments
    role = Role.USER if (method, path) == ("GET", "/shared/things/{id}") else Role.ADMIN
    made = name or f"{method}{path}".lower().translate(str.maketrans("/{}-", "____"))
    return routed(made, path, method, takes=takes, pack=pack, role=role)


TOOLS = (
    at("/shared/things/{id}", name="any_thing"),
    at("/shared/things/{id}", "DELETE", pack="network", name="no_thing"),
    at("/shared/things/fixed", name="fixed_thing"),
    at("/shared/things/pre-{id}", pack="network", name="prefixed_thing"),
    at("/shared/things/only", "POST", name="posted_thing"),
    at("/shared/x/list", name="listed"),
    at("/shared/y/list", pack="network", name="listed_elsewhere"),
    at("/shared/{id}/list", pack="network", name="any_list"),
    at("/api/beside", name="beside_content"),
)


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    async with opened_web(tmp_path_factory.mktemp("shared"), offer(*TOOLS)) as opened:
        yield opened


@pytest.fixture(scope="module")
async def client(web: Web) -> AsyncIterator[httpx2.AsyncClient]:
    async with web.client() as opened:
        yield opened


async def tool_of(web: Web, answer: httpx2.Response) -> str:
    (row,) = await web.audit_rows(answer.headers["x-request-id"])
    return row["tool_name"]


@pytest.mark.parametrize(
    ("method", "path", "tool"),
    [
        ("GET", "/shared/things/1", "any_thing"),
        ("GET", "/shared/things/fixed", "fixed_thing"),
        ("GET", "/shared/things/fixed2", "any_thing"),
        ("GET", "/shared/things/pre-1", "prefixed_thing"),
        ("GET", "/shared/things/only", "any_thing"),
        ("POST", "/shared/things/only", "posted_thing"),
        ("DELETE", "/shared/things/fixed", "no_thing"),
        ("GET", "/shared/x/list", "listed"),
        ("GET", "/shared/y/list", "listed_elsewhere"),
        ("GET", "/shared/z/list", "any_list"),
        ("GET", "/api/beside", "beside_content"),
        ("GET", "/api/projects", "list_projects"),
    ],
)
async def test_the_most_exact_route_of_the_method_is_meant(
    web: Web, client: httpx2.AsyncClient, method: str, path: str, tool: str
) -> None:
    answer = await client.request(method, path)
    assert answer.status_code == 200, answer.text
    assert await tool_of(web, answer) == tool


async def test_a_hidden_route_is_not_in_the_way_of_a_visible_one(web: Web) -> None:
    async with web.client("user") as user:
        seen = await user.get("/shared/things/fixed")
        assert (seen.status_code, await tool_of(web, seen)) == (200, "any_thing")
        hidden = await user.delete("/shared/things/fixed")
    assert hidden.status_code == 405
    assert hidden.headers["allow"] == "GET"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/shared/things/1", "DELETE, GET"),
        ("PUT", "/shared/things/only", "DELETE, GET, POST"),
        ("POST", "/shared/x/list", "GET"),
    ],
)
async def test_another_method_is_told_all_that_are_allowed(
    client: httpx2.AsyncClient, method: str, path: str, allowed: str
) -> None:
    answer = await client.request(method, path)
    assert (answer.status_code, answer.headers["allow"]) == (405, allowed)


PLAIN = {"error": NOTHING_THERE}
STATUS = {"status": "error", "error": {"type": "not_found", "message": NOTHING_THERE}}
RPC = {
    "code": -32200,
    "message": NOTHING_THERE,
    "data": {
        "reason": NOTHING_THERE,
        "suggestion": "Check the names and ids in the arguments.",
        "name": "NOT_FOUND",
    },
}
ENVELOPE = {"error": {"code": "NOT_FOUND", "message": NOTHING_THERE}}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/shared", PLAIN),
        ("/shared/nothing", PLAIN),
        ("/shared/things", PLAIN),
        ("/shared/things/a/b", PLAIN),
        ("/shared/x", STATUS),
        ("/shared/x/nothing", STATUS),
        ("/shared/x/list/more", STATUS),
        ("/shared/y/nothing", RPC),
        ("/api/nothing", PLAIN),
        ("/api/beside/more", STATUS),
        ("/api/entities/a/b/c", ENVELOPE),
        ("/api/seo/nothing", ENVELOPE),
        ("/shared" + "/a" * 5000, PLAIN),
    ],
    ids=lambda one: one[:30] if isinstance(one, str) else "",
)
async def test_an_unknown_path_is_told_in_the_words_of_the_routes_nearest_to_it(
    client: httpx2.AsyncClient, path: str, body: Any
) -> None:
    answer = await client.get(path)
    assert (answer.status_code, answer.json()) == (404, body)


async def test_one_path_is_one_entry_in_openapi(client: httpx2.AsyncClient) -> None:
    paths = (await client.get("/openapi.json")).json()["paths"]
    assert paths["/shared/things/{id}"].keys() == {"get", "delete"}


# What cannot be told apart


@pytest.mark.parametrize("path", ["/a/{id}", "/a/{other}"])
def test_two_tools_with_one_route_are_refused(path: str) -> None:
    tools = at("/a/{id}", name="first"), at(path, pack="network", name="second")
    with pytest.raises(DuplicateRoute) as refused:
        Catalogue(offer(*tools))
    assert str(refused.value) == (
        "Two tools have one route: 'first' of pack 'orchestrator' (GET /a/{id}) and 'second' of "
        f"pack 'network' (GET {path}). Change one, or enable only one of the packs "
        "(setting packs.enabled)."
    )
    assert explain(refused.value) == (str(refused.value), ExitCode.USAGE)


def test_one_path_whose_parts_have_two_names_is_refused() -> None:
    tools = at("/a/{id}", name="first"), at("/a/{other}", "DELETE", name="second")
    with pytest.raises(DuplicateRoute, match=r"'first' .* and 'second' .* the same names"):
        Catalogue(offer(*tools))


async def test_a_server_does_not_start_with_two_tools_at_one_route(tmp_path: Path) -> None:
    taken = at("/api/projects", name="projects_again")
    with pytest.raises(DuplicateRoute, match=r"'list_projects' .* and 'projects_again' "):
        async with opened_web(tmp_path, offer(taken)):
            pytest.fail("it started")

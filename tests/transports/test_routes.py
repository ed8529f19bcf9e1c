"""Tools at addresses of their own, on a running server."""

import json
import socket
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx2
import pytest
from tests.patience import PATIENT
from tests.servers import Server
from tests.transports.conftest import opened_web
from tests.transports.mcp_requests import ERAS, message_of, tool_call

from toolgate.packs.content.demo import COMPOST, GARDEN, GUIDE, PSYMETRIC, RAG
from toolgate.ports.documents import StoreUnavailable
from toolgate.transports.refusals import NOTHING_THERE

NOBODY = "00000000-0000-4000-a000-0000000000ff"
NO_PROJECT = b'{"error":{"code":"NOT_FOUND","message":"Project not found"}}'

# Tool, path, query, and the arguments that mean the same.
Case = tuple[str, str, dict[str, str], dict[str, Any]]
CASES: dict[str, Case] = {
    "projects": ("list_projects", "/api/projects", {}, {}),
    "a page of projects": (
        "list_projects", "/api/projects", {"page": "2", "limit": "1"}, {"page": 2, "limit": 1}
    ),
    "a bad page of projects": ("list_projects", "/api/projects", {"page": "0"}, {"page": 0}),
    "a page that is a word": ("list_projects", "/api/projects", {"page": "x"}, {"page": "x"}),
    "a page with a point": ("list_projects", "/api/projects", {"page": "1.5"}, {"page": "1.5"}),
    "an empty page": ("list_projects", "/api/projects", {"page": ""}, {"page": ""}),
    "an unknown parameter": ("list_projects", "/api/projects", {"sort": "1"}, {"sort": "1"}),
    "entities": (
        "search_entities",
        "/api/entities",
        {"entityType": "concept", "search": "RAG or", "limit": "5"},
        {"projectId": PSYMETRIC, "entityType": "concept", "search": "RAG or", "limit": 5},
    ),
    "entities with empty filters": (
        "search_entities",
        "/api/entities",
        {"entityType": "", "search": "", "status": ""},
        {"projectId": PSYMETRIC, "entityType": "", "search": "", "status": ""},
    ),
    "entities named by digits": (
        "search_entities", "/api/entities", {"search": "1"}, {"projectId": PSYMETRIC, "search": "1"}
    ),
    "entities of an unknown type": (
        "search_entities",
        "/api/entities",
        {"entityType": "video"},
        {"projectId": PSYMETRIC, "entityType": "video"},
    ),
    "an entity": (
        "get_entity", f"/api/entities/{RAG}", {}, {"projectId": PSYMETRIC, "entityId": RAG}
    ),
    "an entity of another project": (
        "get_entity", f"/api/entities/{COMPOST}", {}, {"projectId": PSYMETRIC, "entityId": COMPOST}
    ),
    "an entity with a bad id": (
        "get_entity", "/api/entities/rag", {}, {"projectId": PSYMETRIC, "entityId": "rag"}
    ),
    "a graph": (
        "get_entity_graph",
        f"/api/entities/{RAG}/graph",
        {"depth": "2", "relationshipTypes": "CONCEPT_RELATES_TO_CONCEPT,GUIDE_USES_CONCEPT"},
        {
            "projectId": PSYMETRIC,
            "entityId": RAG,
            "depth": 2,
            "relationshipTypes": "CONCEPT_RELATES_TO_CONCEPT,GUIDE_USES_CONCEPT",
        },
    ),
    "a graph too deep": (
        "get_entity_graph",
        f"/api/entities/{RAG}/graph",
        {"depth": "3"},
        {"projectId": PSYMETRIC, "entityId": RAG, "depth": 3},
    ),
    "search performance": (
        "list_search_performance",
        "/api/seo/search-performance",
        {"query": "rag", "dateStart": "2025-06-01", "entityId": GUIDE},
        {
            "projectId": PSYMETRIC, "query": "rag", "dateStart": "2025-06-01", "entityId": GUIDE
        },
    ),
    "search performance from end to start": (
        "list_search_performance",
        "/api/seo/search-performance",
        {"dateStart": "2025-06-02", "dateEnd": "2025-06-01"},
        {"projectId": PSYMETRIC, "dateStart": "2025-06-02", "dateEnd": "2025-06-01"},
    ),
    "quotable blocks": (
        "list_quotable_blocks",
        "/api/quotable-blocks",
        {"claimType": "definition", "verifiedUntilAfter": "2025-06-01T00:00:00.000Z"},
        {
            "projectId": PSYMETRIC,
            "claimType": "definition",
            "verifiedUntilAfter": "2025-06-01T00:00:00.000Z",
        },
    ),
}  # fmt: skip
SCOPED = [
    "/api/entities",
    "/api/seo/search-performance",
    "/api/quotable-blocks",
]
ROUTES = [
    "/api/projects", *SCOPED, f"/api/entities/{RAG}", f"/api/entities/{RAG}/graph",
]  # fmt: skip


@pytest.fixture(scope="module")
def admin(server: Server) -> Iterator[httpx2.Client]:
    with server.client() as client:
        yield client


def get(client: httpx2.Client, path: str, query: Any = "", **headers: str) -> httpx2.Response:
    """A request whose query is sent as it is written."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    query = query if isinstance(query, str) else urlencode(query)
    return client.get(f"{path}?{query}" if query else path, headers=named)


def envelope(answer: httpx2.Response, status: int, code: str) -> str:
    """The message, in the pack's own envelope."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    body = answer.json()
    assert list(body) == ["error"]
    assert list(body["error"]) == ["code", "message"]
    assert body["error"]["code"] == code
    return body["error"]["message"]


def refused(answer: httpx2.Response) -> str:
    return envelope(answer, 400, "BAD_REQUEST")


# The same bytes


@pytest.mark.parametrize("case", CASES)
def test_a_route_answers_the_tools_bytes(admin: httpx2.Client, case: str) -> None:
    tool, path, query, arguments = CASES[case]
    answer = get(admin, path, query)
    posted = admin.post(f"/v1/tools/{tool}", json=arguments)
    assert (answer.status_code, answer.content) == (posted.status_code, posted.content)
    assert answer.headers["content-type"] == posted.headers["content-type"]


@pytest.mark.anyio
@pytest.mark.parametrize("era", ERAS)
async def test_a_route_answers_the_text_of_mcp(server: Server, era: str) -> None:
    headers = {"Authorization": f"Bearer {server.admin_key}"}
    async with httpx2.AsyncClient(base_url=server.url, headers=headers, trust_env=False) as client:
        for tool, path, query, arguments in CASES.values():
            answer = await client.get(path, params=query)
            told = message_of(await tool_call(era, tool, arguments).send(client))["result"]
            assert [part["text"] for part in told["content"]] == [answer.text]
            assert told.get("isError", False) is (answer.status_code != 200)


@pytest.mark.parametrize("holder", ["user", "pm", "pa", "worker"])
def test_a_tool_that_is_hidden_has_no_route(server: Server, holder: str) -> None:
    with server.client(holder) as client:
        nowhere = get(client, "/nothing")
        assert (nowhere.status_code, nowhere.json()) == (404, {"error": NOTHING_THERE})
        assert get(client, "/api/nothing").content == nowhere.content
        for tool, path, query, _ in CASES.values():
            answer = get(client, path, query)
            assert (answer.status_code, answer.content) == (404, nowhere.content)
            (row,) = server.audit_rows(answer.headers["x-request-id"])
            assert (row["tool_name"], row["decision"]) == (tool, "deny")
            wrong = client.post(path)
            assert (wrong.status_code, wrong.content) == (404, nowhere.content)


def test_two_reads_have_the_same_bytes(admin: httpx2.Client) -> None:
    for path in ROUTES:
        assert get(admin, path).content == get(admin, path).content


# The project


def project_of(answer: httpx2.Response) -> str:
    assert answer.status_code == 200, answer.text
    (found,) = {row["projectId"] for row in answer.json()["data"]}
    return found


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


# The query


def test_the_project_is_not_a_query_parameter(admin: httpx2.Client) -> None:
    for path in [path for path in ROUTES if path != "/api/projects"]:
        told = refused(get(admin, path, {"projectId": PSYMETRIC}))
        assert told.startswith("projectId is not a query parameter")


@pytest.mark.parametrize("path", ROUTES)
def test_an_unknown_parameter_is_refused(admin: httpx2.Client, path: str) -> None:
    told = refused(get(admin, path, "sort=title"))
    assert told.startswith("Unknown argument 'sort'. ")
    assert "projectId" not in told
    assert "entityId" not in told or RAG not in path


@pytest.mark.parametrize("query", ["page=1&page=1", "page=1&limit=2&page=2", "page=&page=1"])
def test_a_repeated_parameter_is_refused(admin: httpx2.Client, query: str) -> None:
    assert refused(get(admin, "/api/projects", query)) == "page is given more than once"


def test_what_the_path_says_is_not_said_again(admin: httpx2.Client) -> None:
    for path in (f"/api/entities/{RAG}", f"/api/entities/{RAG}/graph"):
        for other in (RAG, GUIDE):
            told = refused(get(admin, path, {"entityId": other}))
            assert told == "entityId is part of the path. Leave it out of the query"


def test_percent_encoding_and_plus_are_undone(admin: httpx2.Client) -> None:
    plain = get(admin, "/api/entities", {"search": "RAG or"})
    assert len(plain.json()["data"]) == 1
    for query in ("search=RAG+or", "search=RAG%20or", "%73earch=%52AG+o%72"):
        assert get(admin, "/api/entities", query).content == plain.content


def raw(server: Server, target: bytes, method: bytes = b"GET") -> tuple[int, bytes]:
    """A request whose target goes out byte for byte."""
    place = urlsplit(server.url)
    lines = [
        method + b" " + target + b" HTTP/1.1",
        b"Host: 127.0.0.1",
        b"Connection: close",
        b"Authorization: Bearer " + server.admin_key.encode(),
    ]
    with socket.create_connection((place.hostname or "", place.port or 0), timeout=PATIENT) as link:
        link.sendall(b"\r\n".join(lines) + b"\r\n\r\n")
        answer = b"".join(iter(lambda: link.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


@pytest.mark.parametrize("query", [b"search=%ff", b"search=%c3", b"%ff=1", b"search=%ed%a0%80"])
def test_bytes_that_are_no_text_are_refused(server: Server, query: bytes) -> None:
    status, body = raw(server, b"/api/entities?" + query)
    told = {"code": "BAD_REQUEST", "message": "The query string is not valid UTF-8"}
    assert (status, json.loads(body)) == (400, {"error": told})


@pytest.mark.parametrize("query", [b"search=%zz", b"search=%", b"search=100%", b"search=%2"])
def test_a_percent_sign_that_encodes_nothing_is_one(server: Server, query: bytes) -> None:
    status, body = raw(server, b"/api/entities?" + query)
    assert (status, json.loads(body)["data"]) == (200, [])


def test_a_path_is_decoded_once(server: Server) -> None:
    encoded = RAG.replace("-", "%2D").encode()
    twice = RAG.replace("-", "%252D").encode()
    assert raw(server, b"/api/entities/" + encoded)[0] == 200
    status, body = raw(server, b"/api/entities/" + twice)
    assert (status, json.loads(body)["error"]["code"]) == (400, "BAD_REQUEST")


@pytest.mark.parametrize("part", [b"%ff", b"%00", b"%zz", b"%20", b"%E2%80%AE", b"x" * 2000])
def test_an_odd_path_is_a_malformed_id(server: Server, part: bytes) -> None:
    status, body = raw(server, b"/api/entities/" + part)
    told = {"code": "BAD_REQUEST", "message": "entityId must be a valid UUID"}
    assert (status, json.loads(body)) == (400, {"error": told})


# Methods, routes, credentials


@pytest.mark.parametrize("path", ROUTES)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_another_method_is_refused_with_the_one_allowed(
    admin: httpx2.Client, path: str, method: str
) -> None:
    answer = admin.request(method, path)
    assert answer.headers["allow"] == "GET"
    told = envelope(answer, HTTPStatus.METHOD_NOT_ALLOWED, "BAD_REQUEST")
    assert told == f"{method} is not possible here. Use GET."


@pytest.mark.parametrize(
    "path",
    [
        "/api",
        "/api/",
        "/api/nothing",
        "/api/projects/",
        "/api/Projects",
        f"/api/projects/{PSYMETRIC}",
        "/api/entities/",
        f"/api/entities/{RAG}/",
        f"/api/entities/{RAG}/graph/x",
        f"/api/entities/{RAG}/Graph",
        "/api/entities/a%2Fb",
        "/api/seo",
        "/api/seo/search-performances",
    ],
)
def test_an_unknown_route_is_not_found_in_the_packs_envelope(
    admin: httpx2.Client, path: str
) -> None:
    for method in ("GET", "POST"):
        told = envelope(admin.request(method, path), 404, "NOT_FOUND")
        assert told == NOTHING_THERE


def test_a_target_without_a_path_is_no_defect(server: Server) -> None:
    status, _ = raw(server, b"*", b"OPTIONS")
    assert 400 <= status < 500


# Audit


@pytest.mark.parametrize("case", CASES)
def test_every_call_of_a_route_is_audited(server: Server, admin: httpx2.Client, case: str) -> None:
    tool, path, query, _ = CASES[case]
    answer = get(admin, path, query)
    (row,) = server.audit_rows(answer.headers["x-request-id"])
    assert (row["tool_name"], row["transport"]) == (tool, "http")
    assert row["status"] == ("success" if answer.status_code == 200 else "error")


def test_a_call_that_could_not_be_read_is_audited(server: Server, admin: httpx2.Client) -> None:
    for answer in (
        get(admin, "/api/entities", "page=1&page=2"),
        get(admin, "/api/entities", x_project_slug="X"),
    ):
        (row,) = server.audit_rows(answer.headers["x-request-id"])
        assert (row["tool_name"], row["transport"]) == ("search_entities", "http")
        assert (row["status"], row["error_type"]) == ("error", "invalid_arguments")


# Settings and faults


@pytest.mark.anyio
async def test_the_default_project_is_a_setting(tmp_path: Path) -> None:
    async with opened_web(tmp_path, content__default_project=GARDEN) as web, web.client() as client:
        assert project_of(await client.get("/api/entities")) == GARDEN


@pytest.mark.anyio
async def test_a_store_that_does_not_answer_for_a_slug_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(self: Any, slug: str) -> str | None:
        raise StoreUnavailable("The content store does not answer. Try again later.")

    monkeypatch.setattr("toolgate.packs.content.sql.store.SqlContent.project_id", silent)
    async with opened_web(tmp_path) as web, web.client() as client:
        answer = await client.get("/api/entities", headers={"x-project-slug": "psymetric"})
        told = envelope(answer, 503, "SERVER_ERROR")
        assert told == "The content store does not answer. Try again later."
        (row,) = await web.audit_rows(answer.headers["x-request-id"])
        assert (row["tool_name"], row["error_type"]) == ("search_entities", "unavailable")

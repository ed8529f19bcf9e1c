"""Tools at addresses of their own, on a running server."""

from http import HTTPStatus
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.packs.content.routes import CASES, ROUTES, envelope, get, raw
from tests.servers import Server
from tests.transports.conftest import opened_web
from tests.transports.mcp_requests import ERAS, message_of, tool_call

from toolgate.packs.content.demo import PSYMETRIC, RAG
from toolgate.ports.documents import StoreUnavailable
from toolgate.transports.refusals import NOTHING_THERE

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


# Faults


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

"""What the query and the path of a route may say."""

import json

import httpx2
import pytest
from tests.packs.content.routes import ROUTES, get, raw, refused
from tests.servers import Server

from toolgate.packs.content.demo import GUIDE, PSYMETRIC, RAG


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

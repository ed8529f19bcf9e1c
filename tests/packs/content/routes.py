"""The routes of the pack, and requests to them."""

import socket
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx2
from tests.patience import PATIENT
from tests.servers import Server

from toolgate.packs.content.demo import COMPOST, GUIDE, PSYMETRIC, RAG

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


def project_of(answer: httpx2.Response) -> str:
    assert answer.status_code == 200, answer.text
    (found,) = {row["projectId"] for row in answer.json()["data"]}
    return found


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

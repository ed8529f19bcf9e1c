"""Nothing is reached from a wrong host, a foreign web page, or without a key."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from tests.transports.conftest import Web, opened_web

from toolgate.gate.principal import Role

pytestmark = pytest.mark.anyio

GUARDED = [
    ("GET", "/v1/tools"),
    ("POST", "/v1/tools/list_collections"),
    ("POST", "/v1/tools/no_such_tool"),
    ("POST", "/rpc"),
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("POST", "/backend-manager/mcp"),
    ("GET", "/openapi.json"),
    ("GET", "/metrics"),
    ("GET", "/nothing/here"),
]
WRONG_CREDENTIALS = {
    "none": {},
    "an empty header": {"Authorization": ""},
    "the scheme alone": {"Authorization": "Bearer"},
    "the scheme and a space": {"Authorization": "Bearer "},
    "another scheme": {"Authorization": "Basic YWRtaW46YWRtaW4="},
    "a key without a scheme": {"Authorization": "0123456789abcdef0123456789abcdef"},
    "a wrong key": {"Authorization": "Bearer 0123456789abcdef0123456789abcdef"},
    "a made-up key": {"Authorization": f"Bearer tg_{'0' * 16}_{'0' * 64}"},
    "a key with odd letters": {"Authorization": b"Bearer tg_\xff\xfe_\x80"},
    "a very long key": {"Authorization": "Bearer " + "x" * 20_000},
}


# Credentials


@pytest.mark.parametrize(("method", "path"), GUARDED)
async def test_without_a_key_everything_is_unauthorized(web: Web, method: str, path: str) -> None:
    async with web.client(None) as client:
        answer = await client.request(method, path, json={} if method == "POST" else None)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer ")
    told = answer.json()["error"]
    assert (told["message"] if path == "/rpc" else told).startswith("Unauthorized. ")


@pytest.mark.parametrize("what", WRONG_CREDENTIALS)
async def test_wrong_credentials_are_unauthorized(web: Web, what: str) -> None:
    headers: Any = {**WRONG_CREDENTIALS[what], "X-Request-Id": f"wrong-{what.replace(' ', '-')}"}
    async with web.client(None) as client:
        answer = await client.get("/v1/tools", headers=headers)
        unknown = await client.get("/v1/tools")
    assert answer.status_code == 401
    assert answer.content == unknown.content, "the answer does not tell what was wrong"
    [row] = await web.audit_rows(headers["X-Request-Id"])
    assert row["subject_type"] == "anonymous"
    assert row["tool_name"] == "/v1/tools"
    assert (row["decision"], row["rule"]) == ("deny", "credentials-required")
    assert (row["status"], row["error_type"]) == ("error", "unauthenticated")


async def test_a_refused_key_is_nowhere_in_the_audit(web: Web) -> None:
    async with web.client(None, Authorization="Bearer letmein-letmein-letmein") as client:
        await client.get("/v1/tools", headers={"X-Request-Id": "a-refused-key"})
    [row] = await web.audit_rows("a-refused-key")
    assert "letmein" not in str(row)


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_the_scheme_may_be_in_any_case(web: Web, scheme: str) -> None:
    async with web.client(None, Authorization=f"{scheme} {web.keys['admin']}") as client:
        assert (await client.get("/v1/tools")).status_code == 200


async def test_a_revoked_key_is_unauthorized(web: Web) -> None:
    made = await web.kit.app.keys.create(role=Role.USER, user_id="xyz789")
    async with web.client(None, Authorization=f"Bearer {made.key}") as client:
        assert (await client.get("/v1/tools")).status_code == 200
        await web.kit.app.keys.revoke(made.id)
        assert (await client.get("/v1/tools")).status_code == 401


async def test_keys_that_cannot_be_looked_up_let_nobody_in(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await web.kit.app.keys.create(role=Role.ADMIN)

    async def silent(*_: Any, **__: Any) -> None:
        raise OperationalError("SELECT", {}, Exception("password=hunter2"))

    monkeypatch.setattr(type(web.kit.app.gate.database), "look_up", silent)
    async with web.client(None, Authorization=f"Bearer {made.key}") as client:
        answer = await client.get("/v1/tools")
    assert answer.status_code == 503
    assert answer.json() == {"error": "Keys cannot be checked now. Try again."}


@pytest.mark.parametrize(("path", "answer"), [("/healthz", "ok"), ("/readyz", "ready")])
async def test_health_needs_no_key(web: Web, path: str, answer: str) -> None:
    async with web.client(None) as client:
        told = await client.get(path)
    assert (told.status_code, told.json()) == (200, {"status": answer})


# Hosts


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "localhost:8765", "[::1]", "[::1]:80"])
async def test_loopback_is_served(web: Web, host: str) -> None:
    async with web.client() as client:
        assert (await client.get("/v1/tools", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example:8765",
     "localhost:evil", "localhost@evil.example", "", "LOCALHOST.", "*"],
)  # fmt: skip
async def test_another_host_is_not_served(web: Web, host: str) -> None:
    async with web.client() as client:
        for path in ("/v1/tools", "/healthz", "/mcp"):
            answer = await client.get(path, headers={"Host": host})
            assert answer.status_code == 421
            assert "server.allowed_hosts" in answer.json()["error"]


async def test_a_request_without_a_host_is_not_served(web: Web) -> None:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/healthz", "headers": []}
    await web.app(scope, receive, send)
    assert sent[0]["status"] == 421


async def test_a_configured_host_is_served(tmp_path: Path) -> None:
    settings = {"server__allowed_hosts": ("gate.example",)}
    async with opened_web(tmp_path, **settings) as web, web.client(host="gate.example") as client:
        assert (await client.get("/v1/tools")).status_code == 200
        refused = await client.get("/v1/tools", headers={"Host": "localhost"})
    assert refused.status_code == 421


async def test_every_host_is_served_where_that_is_set(tmp_path: Path) -> None:
    settings = {"server__allowed_hosts": ("*",)}
    async with opened_web(tmp_path, **settings) as web, web.client(host="any.example") as client:
        assert (await client.get("/v1/tools")).status_code == 200


# Origins


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://localhost.evil.example", "file://", "localhost",
     "https://evil.example:127.0.0.1", "chrome-extension://abcdef", "http://", "x" * 5000,
     "http://[::1", "http://localhost:notaport", "http://localhost/evil", "http://a@localhost",
     "http://127.0.0.1:²", "http://localhost:99999999", "http://localhost:"],
)  # fmt: skip
async def test_a_foreign_origin_may_not_call(web: Web, origin: str) -> None:
    async with web.client() as client:
        for method, path in (("POST", "/mcp"), ("POST", "/v1/tools/list_collections")):
            headers = {b"origin": origin.encode("latin-1")}
            answer = await client.request(method, path, headers=headers, json={})
            assert answer.status_code == 403
            assert "server.allowed_origins" in answer.json()["error"]


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8765", "http://localhost", "https://[::1]:9"])
async def test_an_origin_on_a_served_host_may_call(web: Web, origin: str) -> None:
    async with web.client(Origin=origin) as client:
        assert (await client.get("/v1/tools")).status_code == 200


async def test_a_configured_origin_may_call(tmp_path: Path) -> None:
    async with opened_web(tmp_path, server__allowed_origins=("https://app.example",)) as web:
        async with web.client(Origin="https://app.example") as client:
            assert (await client.get("/v1/tools")).status_code == 200
        for origin in ("http://app.example", "https://app.example:444", "https://sub.app.example"):
            async with web.client(Origin=origin) as client:
                assert (await client.get("/v1/tools")).status_code == 403


async def test_an_origin_is_checked_before_the_key(web: Web) -> None:
    async with web.client(None, Origin="https://evil.example") as client:
        assert (await client.get("/v1/tools")).status_code == 403


# Request ids


@pytest.mark.parametrize("given", ["a", "req-1", "A.b_c:d/e+f=g-h", "x" * 128])
async def test_a_request_id_is_kept_and_audited(web: Web, given: str) -> None:
    async with web.client() as client:
        answer = await client.post("/v1/tools/list_collections", headers={"X-Request-Id": given})
    assert answer.headers["x-request-id"] == given
    [row] = await web.audit_rows(given)
    assert row["tool_name"] == "list_collections"


@pytest.mark.parametrize(
    "given", ["", "x" * 129, "two words", "a\tb", "<script>", b"caf\xe9", "a;b", "a,b", '"'],
)  # fmt: skip
async def test_a_bad_request_id_is_replaced(web: Web, given: Any) -> None:
    async with web.client() as client:
        answer = await client.post("/v1/tools/list_collections", headers={"X-Request-Id": given})
    made = answer.headers["x-request-id"]
    assert made != given
    assert len(made) >= 16
    assert made.isalnum()
    [row] = await web.audit_rows(made)
    assert row["status"] == "success"


async def test_no_client_gives_its_request_an_id_of_another(web: Web) -> None:
    async with web.client() as admin, web.client("user") as user:
        first = (await admin.post("/v1/tools/health_check")).headers["x-request-id"]
        again = await user.post("/v1/tools/health_check", headers={"X-Request-Id": first})
        near = await user.post("/v1/tools/health_check", headers={"X-Request-Id": first[:-1]})
    assert again.headers["x-request-id"] != first
    assert near.headers["x-request-id"] == first[:-1], "only the form of ours is kept for us"
    assert len(await web.audit_rows(first)) == 1


async def test_every_request_gets_an_id_of_its_own(web: Web) -> None:
    async with web.client() as client:
        made = [(await client.get("/v1/tools")).headers["x-request-id"] for _ in range(20)]
    assert len(set(made)) == 20


@pytest.mark.parametrize(
    ("path", "status"), [("/nothing", 404), ("/healthz", 200), ("/v1/tools", 200), ("/rpc", 405)]
)
async def test_every_answer_carries_the_request_id(web: Web, path: str, status: int) -> None:
    async with web.client() as client:
        answer = await client.get(path, headers={"X-Request-Id": "here"})
    assert (answer.status_code, answer.headers["x-request-id"]) == (status, "here")


async def test_an_unauthorized_answer_carries_the_request_id(web: Web) -> None:
    async with web.client(None) as client:
        answer = await client.get("/v1/tools", headers={"X-Request-Id": "stranger"})
    assert (answer.status_code, answer.headers["x-request-id"]) == (401, "stranger")


# Figures


async def test_metrics_are_for_admins(web: Web) -> None:
    for holder in ("user", "pm", "pa", "worker"):
        async with web.client(holder) as client:
            refused = await client.get("/metrics")
        assert refused.status_code == 403
        assert refused.json() == {"error": "Metrics are for admins: use a key with role admin."}


async def test_metrics_count_calls(web: Web) -> None:
    sample = 'toolgate_calls_total{outcome="success",tool="describe_collection",transport="http"}'
    async with web.client() as client:
        before = figure((await client.get("/metrics")).text, sample)
        for _ in range(3):
            await client.post("/v1/tools/describe_collection", json={"collection_name": "users"})
        page = await client.get("/metrics")
    assert page.headers["content-type"].startswith("text/plain")
    assert figure(page.text, sample) == before + 3


async def test_metrics_keep_made_up_names_out_of_their_labels(web: Web) -> None:
    async with web.client() as client:
        await client.post("/v1/tools/made_up_by_a_stranger")
        page = (await client.get("/metrics")).text
    assert "made_up_by_a_stranger" not in page
    assert 'tool="(unknown)"' in page


def figure(page: str, sample: str) -> float:
    found = [line for line in page.splitlines() if line.startswith(sample)]
    return float(found[0].rpartition(" ")[2]) if found else 0.0

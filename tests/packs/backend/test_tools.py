"""The first tools of pack `backend`, through the gate and on their routes."""

import uuid
from collections.abc import AsyncIterator
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from tests.servers import Server

from toolgate.gate.principal import Role, of_role
from toolgate.ports.documents import Create
from toolgate.settings import BadSettings, read_settings
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

ANNA = of_role(Role.USER, "key:1", "anna")
PRIVATE_KEY = "pk_0123456789abcdef0123456789abcdef"


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[Kit]:
    async with opened_kit(tmp_path) as opened:
        yield opened


async def keep(kit: Kit, uid: str, record: dict[str, Any]) -> None:
    documents = kit.app.documents.of("backend")
    async with kit.app.gate.database.transaction() as tx:
        await documents.write(tx, Create("users", uid, record))


async def test_a_user_gets_their_own_record_over_the_defaults(kit: Kit) -> None:
    await keep(kit, "anna", {"auth": {"email": "anna@example.com"}, "team": "blue"})
    user = (await kit.call("get_user", as_=ANNA)).body["user"]
    assert user["auth"] == {"uid": "anna", "email": "anna@example.com", "temporary": False}
    assert user["team"] == "blue"
    names = ("admin", "betaTester", "developer", "vip", "blogger")
    assert user["roles"] == dict.fromkeys(names, False)
    assert user["subscription"]["product"] == {"id": "basic", "name": "Basic"}


async def test_a_user_without_a_record_has_the_defaults(kit: Kit) -> None:
    user = (await kit.call("get_user", as_=ANNA)).body["user"]
    assert user["auth"] == {"uid": "anna", "email": None, "temporary": False}


@pytest.mark.parametrize(
    ("record", "email"),
    [
        ({"email": "top@example.com"}, "top@example.com"),
        ({"email": "top@example.com", "auth": {"temporary": True}}, "top@example.com"),
        ({"email": "top@example.com", "auth": {"email": None}}, "top@example.com"),
        ({"email": "top@example.com", "auth": {"email": "auth@example.com"}}, "auth@example.com"),
        ({"email": ""}, None),
        ({"email": 5}, None),
    ],
)
async def test_the_address_may_stand_at_the_top_of_a_record(
    kit: Kit, record: dict[str, Any], email: str | None
) -> None:
    await keep(kit, "anna", record)
    user = (await kit.call("get_user", as_=ANNA)).body["user"]
    assert user["auth"]["email"] == email
    assert user["email"] == record["email"]


async def test_a_private_key_never_leaves_the_store(kit: Kit) -> None:
    await keep(kit, "anna", {"api": {"clientId": "c1", "privateKey": PRIVATE_KEY}})
    outcome = await kit.call("get_user", as_=ANNA)
    assert outcome.body["user"]["api"] == {"clientId": "c1"}
    assert PRIVATE_KEY not in outcome.text


async def test_credentials_of_no_user_are_told_what_to_do(kit: Kit) -> None:
    outcome = await kit.call("get_user")
    assert outcome.status == 404
    assert "`toolgate keys create --role user --user UID`" in outcome.text


async def test_a_uuid_from_a_name_is_always_the_same(kit: Kit) -> None:
    wanted = str(uuid.uuid5(uuid.NAMESPACE_URL, "ada"))
    for given in ({"name": "ada"}, {"input": "ada"}, {"name": "ada", "version": "v5"}):
        assert (await kit.send("generate_uuid", given)).body == {"uuid": wanted}
    space = str(uuid.NAMESPACE_DNS)
    other = await kit.send("generate_uuid", {"name": "ada", "namespace": space.upper()})
    assert other.body == {"uuid": str(uuid.uuid5(uuid.NAMESPACE_DNS, "ada"))}


@pytest.mark.parametrize("number", ["4", "v4", "V4", 4, 4.0])
async def test_a_random_uuid(kit: Kit, number: Any) -> None:
    made = {(await kit.send("generate_uuid", {"version": number})).body["uuid"] for _ in "ab"}
    assert len(made) == 2
    assert {uuid.UUID(one).version for one in made} == {4}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "You must provide a name to hash for UUID v5."),
        ({"name": ""}, "You must provide a name to hash for UUID v5."),
        ({"version": "7"}, "v7 is not a valid version. Valid options: 4, 5"),
        ({"version": True}, "vtrue is not a valid version. Valid options: 4, 5"),
        ({"version": 4.5}, "v4.5 is not a valid version. Valid options: 4, 5"),
        ({"version": []}, "v[] is not a valid version. Valid options: 4, 5"),
        ({"version": None}, "You must provide a name to hash for UUID v5."),
        ({"name": "a", "namespace": "b"}, "namespace must be a UUID"),
    ],
)
async def test_a_uuid_that_cannot_be(kit: Kit, given: dict[str, Any], told: str) -> None:
    outcome = await kit.send("generate_uuid", given)
    assert outcome.status == 400
    assert outcome.body["error"] == told
    assert outcome.text == told, "over MCP a plain sentence"


async def test_the_schema_has_every_version_that_is_taken(kit: Kit) -> None:
    tool = kit.app.gate.catalogue.find("generate_uuid")
    assert tool is not None
    forms = tool.input_schema["properties"]["version"]["anyOf"]
    for number in [one for form in forms for one in form["enum"]]:
        given = {"name": "ada", "version": number}
        assert (await kit.send("generate_uuid", given)).status == 200


async def test_the_namespace_can_be_set(tmp_path: Path) -> None:
    space = str(uuid.uuid4())
    async with opened_kit(tmp_path, backend__namespace=space) as kit:
        for given in ({"name": "ada"}, {"name": "ada", "namespace": None, "version": None}):
            made = await kit.send("generate_uuid", given)
            assert made.body == {"uuid": str(uuid.uuid5(uuid.UUID(space), "ada"))}


def test_a_namespace_that_is_none_is_refused_before_the_start() -> None:
    with pytest.raises(BadSettings, match=r"backend\.namespace"):
        read_settings(environment={"BACKEND_MANAGER_NAMESPACE": "example.com"})


async def test_the_three_roles(kit: Kit) -> None:
    seen = {
        holder: {
            tool.name for tool in kit.app.gate.visible(principal) if tool.pack.name == "backend"
        }
        for holder, principal in (
            ("admin", of_role(Role.ADMIN, "a")),
            ("user", ANNA),
            ("public", of_role(Role.PUBLIC, "p")),
        )
    }
    assert seen["user"] == {"get_user", "get_subscription", "health_check"}
    assert seen["public"] == {"health_check"}
    assert seen["admin"] >= seen["user"] | {"generate_uuid"}


def test_the_routes_answer_what_the_tools_answer(server: Server) -> None:
    with server.client() as admin:
        made = admin.post("/backend-manager/general/uuid", json={"name": "ada"})
        assert made.status_code == 200
        assert made.content == admin.post("/v1/tools/generate_uuid", json={"name": "ada"}).content
        health = admin.get("/backend-manager/test/health")
        assert (health.status_code, health.json()["status"]) == (200, "healthy")
        assert admin.get("/backend-manager/user").status_code == 404
        twice = admin.post("/backend-manager/general/uuid?name=ada", json={"name": "ada"})
        assert twice.json() == {"error": "name is given in the query and in the body. Give it once"}
        assert admin.post("/backend-manager/general/uuid", content=b"{").status_code == 400
        assert admin.post("/backend-manager/general/uuid", json=[1]).status_code == 400
        assert admin.get("/backend-manager/general/uuid").status_code == 405


def test_a_route_does_not_show_to_whom_its_tool_is_hidden(server: Server) -> None:
    with server.client("user") as user:
        hidden = user.post("/backend-manager/general/uuid", json={"name": "ada"})
        nothing = user.post("/backend-manager/nothing", json={"name": "ada"})
        assert (hidden.status_code, hidden.content) == (404, nothing.content)
        assert user.get("/backend-manager/test/health").status_code == 200


def test_nobody_without_credentials_gets_in(server: Server) -> None:
    with server.client() as client:
        client.headers.pop("authorization")
        for path in ("test/health", "user", "nothing"):
            answer = client.get(f"/backend-manager/{path}")
            assert answer.status_code == 401


async def test_health_has_every_field(tmp_path: Path) -> None:
    settings = {"environment": "testing", "project": "somiibo-app", "version": "1.2.3"}
    flags = {f"backend__{name}": value for name, value in settings.items()}
    async with opened_kit(tmp_path, **flags) as kit:
        health = (await kit.call("health_check", as_=of_role(Role.PUBLIC, "p"))).body
    assert datetime.fromisoformat(health.pop("timestamp")).tzinfo is not None
    assert health == {
        "status": "healthy",
        "environment": "testing",
        "projectId": "somiibo-app",
        "version": "1.2.3",
        "bemVersion": version("toolgate"),
        "testExtendedMode": False,
    }


async def test_health_without_settings(kit: Kit) -> None:
    health = (await kit.call("health_check")).body
    assert (health["environment"], health["projectId"]) == ("production", "toolgate")
    assert health["version"] == health["bemVersion"]

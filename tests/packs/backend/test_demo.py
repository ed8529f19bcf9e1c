"""Demo users of pack `backend`, loaded when that pack is empty."""

from pathlib import Path

import pytest

from toolgate import demo
from toolgate.gate.offer import NotForDemo
from toolgate.gate.principal import Role, of_role
from toolgate.packs.backend.demo import DEMO
from toolgate.ports.documents import Create, Query
from toolgate.ports.rules import broken_fields_rule, broken_id_rule
from toolgate.ports.users import is_admin
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio


async def get_user(kit: Kit, uid: str) -> dict[str, object]:
    return (await kit.call("get_user", as_=of_role(Role.USER, "key:1", uid))).body["user"]


async def test_every_demo_user_can_be_got(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, demo_data=True) as kit:
        for _, uid, record in DEMO:
            assert (broken_id_rule(uid), broken_fields_rule(record)) == (None, None)
            assert await get_user(kit, uid) == record


async def test_jane_of_other_packs_is_nobody_here(tmp_path: Path) -> None:
    enabled = ["appdata", "backend"]
    async with opened_kit(tmp_path, demo_data=True, packs__enabled=enabled) as kit:
        assert (await kit.call("firestore_read", path="users/abc123")).body == {}
        jane = await kit.call("get_document", collection="users", document_id="abc123")
        assert jane.body["displayName"] == "Jane Doe"


def test_one_demo_user_is_an_admin() -> None:
    assert [uid for _, uid, record in DEMO if is_admin(record)] == ["_test-admin"]


async def test_demo_users_are_not_put_beside_people_who_signed_in(tmp_path: Path) -> None:
    async with opened_kit(tmp_path) as kit:
        async with kit.app.gate.database.transaction() as tx:
            await kit.app.documents.of("backend").write(tx, Create("users", "somebody", {}))
        with pytest.raises(NotForDemo, match="Pack backend holds documents already"):
            await demo.load_demo(kit.app)
        found = await kit.app.documents.of("backend").query(Query("users"))
        assert [one.id for one in found] == ["somebody"]

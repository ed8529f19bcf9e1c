"""What many share nobody uses up: admins' keys have room of their own, and a user has a share."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.packs.orchestrator.calls import (
    BUILD,
    PM,
    PM_OF_ALICE,
    PM_OF_BOB,
    SORT,
    WEBSITE,
    refused,
    result,
)

from toolgate.gate.principal import AgentType, of_agent
from toolgate.packs import orchestrator
from toolgate.packs.orchestrator.records import ScopeQuota
from toolgate.packs.orchestrator.sql import skills
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

QUOTA = ScopeQuota(8, 1_000)
OF_PROJECT = {"scope_type": "project", "scope_id": WEBSITE}
PM_TOO = of_agent(AgentType.PM, "pm-2")
HALF = "one user has at most half of it"


def text(size: int = 10) -> dict[str, Any]:
    return {"value": "x" * (size - 2), "value_type": "string"}


@pytest.fixture
async def small(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Kit]:
    """A gate where a scope holds little."""
    for name in ("SETTING_QUOTA", "PREFERENCE_QUOTA"):
        monkeypatch.setattr(orchestrator, name, QUOTA)
    for name in ("RESERVED_SETTING_QUOTA", "RESERVED_PREFERENCE_QUOTA"):
        monkeypatch.setattr(orchestrator, name, ScopeQuota(3, 100))
    monkeypatch.setattr(skills, "MAX_SKILLS", 4)
    settings: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["orchestrator"]}
    async with opened_kit(tmp_path, demo_data=True, **settings) as kit:
        await result(kit, "operator.role_binding.set", **DESIGNERS, role="member")
        yield kit


DESIGNERS = {"subject_type": "group", "subject_id": "designers", "project_id": WEBSITE}


async def test_agents_that_fill_the_settings_leave_room_for_admins(small: Kit) -> None:
    new = "db.system_setting.create"
    for number in range(4):
        await result(small, new, PM, key=f"custom.a{number}", **text())
    error = await refused(small, new, PM, key="custom.b", **text())
    assert (error["type"], HALF in error["message"]) == ("quota_exceeded", True)
    for number in range(3):  # beside the one of the demo data
        await result(small, new, PM_TOO, key=f"custom.c{number}", **text())
    error = await refused(small, new, PM_TOO, key="custom.d", **text())
    assert "This scope has 8 records, and may have 8." in error["message"]
    disabled = {"key": "mcp.tools.disabled", "value": ["artifact.put"], "value_type": "array"}
    await result(small, new, **disabled)
    await result(small, new, key="custom.of_admin", **text(2_000))
    await result(small, new, key="security.level", **text())


async def test_keys_of_admins_are_bounded_too(small: Kit) -> None:
    for number in range(3):
        await result(small, "db.system_setting.create", key=f"security.k{number}", **text())
    error = await refused(small, "db.system_setting.create", key="security.k3", **text())
    assert "This scope has 3 records, and may have 3." in error["message"]
    error = await refused(small, "db.system_setting.update", key="security.k2", **text(90))
    assert "together they may have 100" in error["message"]
    await result(small, "db.system_setting.create", PM, key="custom.k", **text())


async def test_a_member_leaves_room_for_the_others_of_a_project(small: Kit) -> None:
    new = "db.preference.create"
    for number in range(4):
        await result(small, new, PM_OF_BOB, **OF_PROJECT, key=f"b{number}", **text())
    error = await refused(small, new, PM_OF_BOB, **OF_PROJECT, key="b4", **text())
    assert (error["type"], HALF in error["message"]) == ("quota_exceeded", True)
    assert "4 records, and 4 are yours" in error["message"]
    await result(small, new, PM_OF_ALICE, **OF_PROJECT, key="own", **text())
    await result(small, new, **OF_PROJECT, key="standards.line", **text())
    await result(small, "db.preference.delete", PM_OF_BOB, **OF_PROJECT, key="b0")
    await result(small, "db.preference.update", PM_OF_BOB, **OF_PROJECT, key="b1", **text(470))
    error = await refused(small, new, PM_OF_BOB, **OF_PROJECT, key="b0", **text(11))
    assert f"{HALF}: 500 bytes of values" in error["message"]
    assert "Your others have 490 and this one 11" in error["message"]


async def test_a_user_has_all_of_the_users_own_scope(small: Kit) -> None:
    own = {"scope_type": "user", "scope_id": "bob"}
    for number in range(8):
        await result(small, "db.preference.create", PM_OF_BOB, **own, key=f"k{number}", **text())
    error = await refused(small, "db.preference.create", PM_OF_BOB, **own, key="k8", **text())
    assert "This scope has 8 records" in error["message"]
    await result(small, "db.preference.create", **own, key="k8", **text())


async def test_a_member_leaves_room_for_others_skills(small: Kit) -> None:
    bobs = {"task_id": SORT, "content": "# x"}
    there = {"scope": "project", "scope_id": WEBSITE}
    await result(small, "skills.create", PM_OF_BOB, **bobs, **there)
    made = await result(small, "skills.create", PM_OF_BOB, **bobs, **there)
    error = await refused(small, "skills.create", PM_OF_BOB, **bobs, **there)
    assert error["type"] == "quota_exceeded"
    assert "one user has at most half of its 4 skills, and 2 are this user's" in error["message"]
    own = await result(small, "skills.create", PM_OF_BOB, **bobs)
    moved = {"task_id": SORT, "skill_id": own["id"], **there}
    assert (await refused(small, "skills.update", PM_OF_BOB, **moved))["type"] == "quota_exceeded"
    await result(small, "skills.update", PM_OF_BOB, task_id=SORT, skill_id=made["id"], name="Y")
    alices = {"task_id": BUILD, "content": "# x", **there}
    for _ in range(2):
        await result(small, "skills.create", PM_OF_ALICE, **alices)
    error = await refused(small, "skills.create", PM_OF_ALICE, **alices)
    assert "This scope has 4 skills, and may have 4." in error["message"]
    await result(small, "skills.create", **alices)


async def test_who_changes_anothers_record_takes_no_room_by_it(small: Kit) -> None:
    for number in range(3):
        key = f"custom.b{number}"
        await result(small, "db.preference.create", PM_OF_BOB, **OF_PROJECT, key=key, **text(150))
    await result(
        small, "db.preference.create", PM_OF_ALICE, **OF_PROJECT, key="custom.a", **text(490)
    )
    for number in range(3):
        key = f"custom.b{number}"
        await result(small, "db.preference.update", PM_OF_ALICE, **OF_PROJECT, key=key, **text(150))
    more = {**OF_PROJECT, "key": "custom.more"}
    error = await refused(small, "db.preference.create", PM_OF_ALICE, **more, **text(20))
    assert HALF in error["message"]
    assert "Your others have 490" in error["message"]
    error = await refused(small, "db.preference.create", PM_OF_BOB, **more, **text(55))
    assert "Your others have 450" in error["message"]
    assert await result(small, "db.preference.create", PM_OF_BOB, **more, **text(40))

"""Lists go on behind the longest key that their records can have."""

from typing import Any

import pytest
from tests.packs.orchestrator.calls import BUILD, PM, WEBSITE, result

from toolgate.gate.cursors import MAX_CHARACTERS
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio


async def check_list_goes_on(kit: Kit, tool: str, items: str = "entries", **arguments: Any) -> None:
    """Read a list one by one: every cursor is accepted, and nothing is missing."""
    whole = (await result(kit, tool, **arguments))[items]
    found: list[Any] = []
    cursor: dict[str, str] = {}
    while True:
        page = await result(kit, tool, **arguments, limit=1, **cursor)
        found += page[items]
        if "next_cursor" not in page:
            break
        assert len(page["next_cursor"]) <= MAX_CHARACTERS
        cursor = {"cursor": page["next_cursor"]}
    assert found == whole
    assert len(whole) > 1


@pytest.mark.parametrize("letter", ['"', "é", "漢", "😀", "a"], ids=["json", "2", "3", "4", "1"])
async def test_artifacts_go_on_behind_a_path_of_any_characters(kit: Kit, letter: str) -> None:
    for last in ("a", "b"):
        path = letter * (1023 // len(letter.encode())) + last
        await result(kit, "artifact.put", PM, task_id=BUILD, path=path, content_bytes_base64="YQ==")
    await check_list_goes_on(kit, "artifact.list", "items", task_id=BUILD)


async def test_lists_of_records_go_on_behind_the_longest_key(kit: Kit) -> None:
    value = {"value": 1, "value_type": "number"}
    for last in ("a", "b"):
        key = "k" * 255 + last
        await result(kit, "db.system_setting.create", key=key, **value)
        await result(kit, "db.preference.create", scope_type="system", key=key, **value)
    await check_list_goes_on(kit, "db.system_setting.list", key_prefix="k")
    await check_list_goes_on(kit, "db.preference.list", scope_type="system", key_prefix="k")
    await result(kit, "db.system_setting.update", key=key, **value)
    await check_list_goes_on(kit, "operator.system_setting.history", key=key)


async def test_lists_of_people_and_projects_go_on_behind_the_longest_ids(kit: Kit) -> None:
    for last in ("a", "b"):
        handle = "u" * 63 + last
        await result(kit, "operator.user.create", user_id=handle, display_name="U")
        await result(kit, "operator.group.create", group_id=handle, display_name="G")
        await result(kit, "operator.group.add_member", group_id=handle, user_id=handle)
        await result(
            kit,
            "operator.role_binding.set",
            project_id=WEBSITE,
            subject_type="user",
            subject_id=handle,
            role="viewer",
        )
    for kind in ("user", "group", "project", "role_binding"):
        await check_list_goes_on(kit, f"operator.{kind}.list")
    await check_list_goes_on(kit, "operator.group.list_members")
    await check_list_goes_on(kit, "db.project.list")


@pytest.mark.parametrize("letter", ['"', "😀"], ids=["json", "4"])
async def test_lists_of_models_and_nodes_go_on_behind_the_longest_names(
    kit: Kit, letter: str
) -> None:
    for last in ("a", "b"):
        await result(kit, "operator.model.create", name=letter * 199 + last)
        await result(kit, "operator.node.create", node_slug="n" * 62 + last)
    await check_list_goes_on(kit, "model.list")
    await check_list_goes_on(kit, "node.list")

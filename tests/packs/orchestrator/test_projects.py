"""Projects: a user's own, whatever the list is asked."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import insert, update
from tests.packs.orchestrator.calls import (
    ABSENT,
    BUILD,
    BUILDING,
    OF_ALICE,
    OF_BOB,
    PM,
    PM_OF_ALICE,
    PM_OF_BOB,
    PUBLISH,
    WEBSITE,
    refused,
    result,
)

from toolgate.gate.principal import Principal
from toolgate.packs.orchestrator.demo import _project  # pyright: ignore[reportPrivateUsage]
from toolgate.packs.orchestrator.sql.tables import bindings, projects, tasks
from toolgate.testing import Kit
from toolgate.testing.kit import ADMIN

pytestmark = pytest.mark.anyio


async def slugs(kit: Kit, who: Principal = ADMIN, **arguments: Any) -> list[str]:
    found: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = await result(kit, "db.project.list", who, **arguments, **cursor)
        found += [one["slug"] for one in page["entries"]]
        if "next_cursor" not in page:
            return found
        cursor = {"cursor": page["next_cursor"]}


async def add(kit: Kit, names: Iterable[tuple[str, str, str]]) -> None:
    rows = [
        _project(f"{number:08d}-0000-4000-8000-000000000000", *name, None)
        for number, name in enumerate(names, 1)
    ]
    await kit.app.gate.database.write(lambda one: one.execute(insert(projects), rows))


async def test_a_user_has_the_default_project_and_those_with_a_role(kit: Kit) -> None:
    assert await slugs(kit) == ["default-alice", "default-bob", "website"]
    assert await slugs(kit, PM_OF_ALICE) == ["default-alice", "website"]
    assert await slugs(kit, PM_OF_BOB) == ["default-bob", "website"], "through the group"
    assert await slugs(kit, PM) == [], "without a user there are no projects"


BOUND: dict[str, dict[str, str]] = {
    "task": {"task_id": PUBLISH},
    "job": {"job_id": BUILDING},
    "project": {"project_id": WEBSITE},
    "all": {"task_id": BUILD, "job_id": BUILDING, "project_id": WEBSITE},
}


@pytest.mark.parametrize("bound", BOUND.values(), ids=[*BOUND])
async def test_a_bound_key_has_the_project_of_its_task_alone(
    kit: Kit, bound: dict[str, str]
) -> None:
    manager = replace(PM_OF_ALICE, bound=bound)
    assert await slugs(kit, manager) == ["website"]
    assert (await result(kit, "db.project.get", manager, slug="website"))["id"] == WEBSITE
    told = [
        await refused(kit, "db.project.get", manager, slug=one)
        for one in ("default-alice", "default-eve")
    ]
    assert told == [{"type": "not_found", "message": "Project not found"}] * 2
    typed = {"key": "custom.a", "value": "x", "value_type": "string"}
    for scope_id in (OF_ALICE, ABSENT):
        scope = {"scope_type": "project", "scope_id": scope_id}
        assert await result(kit, "db.preference.list", manager, **scope) == {"entries": []}
        error = await refused(kit, "db.preference.create", manager, **scope, **typed)
        assert error["type"] == "not_found"
    here = {"scope_type": "project", "scope_id": WEBSITE}
    await result(kit, "db.preference.create", manager, **here, **typed)


async def test_a_key_bound_to_a_task_without_a_project_has_none(kit: Kit) -> None:
    alone = update(tasks).where(tasks.c.id == PUBLISH).values(project_id=None)
    await kit.app.gate.database.write(lambda one: one.execute(alone))
    assert await slugs(kit, replace(PM_OF_ALICE, bound={"task_id": PUBLISH})) == []
    assert await slugs(kit, replace(PM_OF_ALICE, bound={"task_id": ABSENT})) == []


async def test_a_project_is_named_by_id_or_slug(kit: Kit) -> None:
    by_id = await result(kit, "db.project.get", PM_OF_ALICE, project_id=WEBSITE)
    assert await result(kit, "db.project.get", PM_OF_ALICE, slug="website") == by_id
    assert (by_id["display_name"], by_id["is_active"]) == ("Website", True)


@pytest.mark.parametrize("both", [{}, {"project_id": WEBSITE, "slug": "website"}], ids=["0", "2"])
async def test_exactly_one_of_them_is_given(kit: Kit, both: dict[str, str]) -> None:
    error = await refused(kit, "db.project.get", **both)
    assert error["message"] == "exactly one of project_id and slug must be given"


@pytest.mark.parametrize(
    ("foreign", "absent"),
    [
        ({"project_id": OF_BOB}, {"project_id": ABSENT}),
        ({"slug": "default-bob"}, {"slug": "default-nobody"}),
    ],
    ids=["id", "slug"],
)
async def test_a_foreign_project_is_as_good_as_none(
    kit: Kit, foreign: dict[str, str], absent: dict[str, str]
) -> None:
    told = [await refused(kit, "db.project.get", PM_OF_ALICE, **one) for one in (foreign, absent)]
    assert told == [{"type": "not_found", "message": "Project not found"}] * 2
    assert (await refused(kit, "db.project.get", PM, project_id=OF_ALICE)) == told[0]


async def test_an_inactive_project_says_so(kit: Kit) -> None:
    closed = update(projects).where(projects.c.id == WEBSITE).values(is_active=False)
    await kit.app.gate.database.write(lambda one: one.execute(closed))
    assert (await result(kit, "db.project.get", slug="website"))["is_active"] is False


async def test_a_text_is_looked_for_in_slug_name_and_description(kit: Kit) -> None:
    await add(
        kit,
        [
            ("slug-kran", "A", "b"),
            ("b", "Der KRAN", "c"),
            ("c", "d", "über Kräne"),
            ("d", "100%", "a_b"),
        ],
    )
    assert await slugs(kit, q="kran") == ["b", "c", "slug-kran"]
    assert await slugs(kit, q="ÜBER") == ["c"]
    assert await slugs(kit, q="%") == ["d"]
    assert await slugs(kit, q="_") == ["d"]
    assert await slugs(kit, q="\\") == []


async def test_a_page_holds_what_the_user_reaches_however_much_there_is(kit: Kit) -> None:
    await add(kit, ((f"p{number:05d}", "x", "y") for number in range(2000)))
    bound = {
        "subject_type": "user",
        "subject_id": "alice",
        "project_id": "00001500-0000-4000-8000-000000000000",
        "role": "member",
    }
    await kit.app.gate.database.write(lambda one: one.execute(insert(bindings), bound))
    page = await result(kit, "db.project.list", PM_OF_ALICE, limit=3)
    assert [one["slug"] for one in page["entries"]] == ["default-alice", "p01499", "website"]
    assert "next_cursor" not in page
    assert len(await slugs(kit, limit=200)) == 2003

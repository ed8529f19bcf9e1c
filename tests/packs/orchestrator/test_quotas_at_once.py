"""Many writers at once, on two servers of one database: exactly the quota gets in."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.packs.orchestrator.calls import BUILD, PM, PM_OF_ALICE, PM_OF_BOB, SORT, result

from toolgate.gate.principal import Principal
from toolgate.packs import orchestrator
from toolgate.packs.orchestrator.records import ScopeQuota
from toolgate.packs.orchestrator.sql import skills
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

MOST, WRITERS = 4, 16
OF_TASK = {"scope_type": "task", "scope_id": SORT}
LETTERS = {"value": "xxxxxxxx", "value_type": "string"}
"""Ten bytes as JSON."""

Kits = tuple[Kit, Kit]
Callers = tuple[Principal, ...]
BOTH = (PM, PM_OF_BOB)
"""Who shares the scope: each has half of it."""


@pytest.fixture
async def kits(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Kits]:
    monkeypatch.setattr(skills, "MAX_SKILLS", 2 * MOST)  # of which one user has half
    monkeypatch.setattr(orchestrator, "PREFERENCE_QUOTA", ScopeQuota(MOST, 10 * MOST + 5))
    settings: dict[str, Any] = {
        "database__url": database_url,
        "packs__enabled": ["orchestrator"],
        "orchestrator__task_artifacts": MOST,
        "orchestrator__task_artifact_bytes": 3 * MOST + 2,
    }
    async with (
        opened_kit(tmp_path, demo_data=True, **settings) as first,
        opened_kit(tmp_path / "second", **settings) as second,
    ):
        yield first, second


async def at_once(kits: Kits, tool: str, who: Callers, each: list[dict[str, Any]]) -> Any:
    """How calls end that are made by turns on both servers, all at the same time."""
    ends: Counter[str] = Counter()

    async def call(kit: Kit, caller: Principal, arguments: dict[str, Any]) -> None:
        outcome = await kit.call(tool, caller, **arguments)
        ends["stored" if outcome.error is None else outcome.body["error"]["type"]] += 1

    async with anyio.create_task_group() as group:
        for number, arguments in enumerate(each):
            group.start_soon(call, kits[number % 2], who[number // 2 % len(who)], arguments)
    return ends


async def test_skills_of_a_scope(kits: Kits) -> None:
    new = {"task_id": BUILD, "content": "# x", "scope": "project"}
    ends = await at_once(kits, "skills.create", (PM_OF_ALICE,), [new] * WRITERS)
    assert ends == {"stored": MOST, "quota_exceeded": WRITERS - MOST}


async def test_skills_that_move_into_a_scope(kits: Kits) -> None:
    ids: list[str] = []
    for who, task in ((PM_OF_ALICE, BUILD), (PM, SORT)):  # beside the one of the demo data
        for _ in range(MOST - 1):
            made = await result(kits[0], "skills.create", who, task_id=task, content="# x")
            ids.append(made["id"])
    own = [{"task_id": BUILD, "skill_id": one, "scope": "project"} for one in ids[: MOST - 1]]
    new = {"task_id": BUILD, "content": "# x", "scope": "project"}
    await result(kits[0], "skills.create", PM_OF_ALICE, **new)
    await result(kits[1], "skills.create", PM_OF_ALICE, **new)
    ends = await at_once(kits, "skills.update", (PM_OF_ALICE,), own)
    assert ends == {"stored": MOST - 2, "quota_exceeded": 1}


async def test_preferences_of_a_scope(kits: Kits) -> None:
    each = [{**OF_TASK, "key": f"k{number}", **LETTERS} for number in range(WRITERS)]
    ends = await at_once(kits, "db.preference.create", BOTH, each)
    assert ends == {"stored": MOST, "quota_exceeded": WRITERS - MOST}


async def test_bytes_of_preferences_that_grow(kits: Kits) -> None:
    each = [{**OF_TASK, "key": f"k{number}"} for number in range(MOST)]
    for number, one in enumerate(each):
        await result(kits[0], "db.preference.create", BOTH[number // 2], **one, **LETTERS)
    longer = [{**one, "value": "xxxxxxxxxxx", "value_type": "string"} for one in each]
    ends = await at_once(kits, "db.preference.update", BOTH, longer)
    assert ends == {"stored": 1, "quota_exceeded": MOST - 1}


async def test_one_key_is_created_once(kits: Kits) -> None:
    same = {**OF_TASK, "key": "k", **LETTERS}
    ends = await at_once(kits, "db.preference.create", BOTH, [same] * WRITERS)
    assert ends == {"stored": 1, "conflict": WRITERS - 1}
    again = [same, {**same, "value": "xxxxxxxxx"}] * (WRITERS // 4)
    mixed = await at_once(kits, "db.preference.update", (PM,), again)
    assert mixed == {"stored": WRITERS // 2}


@pytest.mark.parametrize(
    ("content", "stored"), [("eA==", MOST), ("eHh4eHh4eA==", 2)], ids=["files", "bytes"]
)
async def test_artifacts_of_a_task(kits: Kits, content: str, stored: int) -> None:
    each = [
        {"task_id": SORT, "path": f"f{number}", "content_bytes_base64": content}
        for number in range(WRITERS)
    ]
    ends = await at_once(kits, "artifact.put", BOTH, each)
    assert ends == {"stored": stored, "quota_exceeded": WRITERS - stored}
    first = each[0] | {"path": next(iter(await paths(kits[0])))}
    replaced = await at_once(kits, "artifact.put", BOTH, [first] * WRITERS)
    assert replaced == {"stored": WRITERS}


async def paths(kit: Kit) -> list[str]:
    return [one["path"] for one in (await result(kit, "artifact.list", PM, task_id=SORT))["items"]]

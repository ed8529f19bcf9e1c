"""Texts that are kept and read by others: no credentials in them, whichever tool keeps them."""

import time
from typing import Any

import pytest
from sqlalchemy import insert, select
from tests.effort import effort
from tests.packs.orchestrator.calls import BUILD, BUILDING, ID, PM, PM_OF_ALICE, refused, result

from toolgate.packs.orchestrator.secret_values import secret_in
from toolgate.packs.orchestrator.sql.tables import history, skill_versions, skills, tasks
from toolgate.testing import Kit

DATABASES = ["sqlite"]
"""Texts are searched before anything is stored."""

NOTES = ID.format("d1")
STRIPE = "sk_live_" + "51H8abcdEFGHijkl"
SETTING = {"key": "a.b", "value": 1, "value_type": "number"}
OF_ALICE = {"scope_type": "user", "scope_id": "alice"}
STYLE = {"key": "output.summary_style"}
KEPT: dict[str, tuple[str, str, dict[str, Any]]] = {
    "setting-create": ("db.system_setting.create", "reason", SETTING),
    "setting-update": ("db.system_setting.update", "reason", SETTING),
    "setting-delete": ("db.system_setting.delete", "reason", {"key": "models.cache.max_bytes"}),
    "preference-create": ("db.preference.create", "reason", {**OF_ALICE, **SETTING}),
    "preference-update": ("db.preference.update", "reason", {**OF_ALICE, **SETTING}),
    "preference-delete": ("db.preference.delete", "reason", {**OF_ALICE, **STYLE}),
    "task": ("db.task.update_status", "reason", {"task_id": BUILD, "status": "completed"}),
    "quarantine": ("operator.skill.quarantine", "reason", {"skill_id": NOTES}),
    "prompt": ("operator.task.create", "prompt", {}),
    "criteria": ("operator.task.create", "acceptance_criteria", {"prompt": "x"}),
    "summary": ("operator.task.summarize", "summary", {"task_id": BUILD}),
    "payload": ("operator.job.create", "payload", {"task_id": BUILD}),
    "result": ("operator.job.finish", "result", {"job_id": BUILDING, "status": "completed"}),
    "project-name": ("operator.project.create", "display_name", {"slug": "x"}),
    "project-description": (
        "operator.project.update",
        "description",
        {"project_id": ID.format("a1")},
    ),
    "path": ("artifact.put", "path", {"task_id": BUILD, "content_bytes_base64": "eA=="}),
    "skill-name": ("skills.create", "name", {"task_id": BUILD, "content": "x"}),
    "skill-content": ("skills.create", "content", {"task_id": BUILD}),
    "skill-new-name": ("skills.update", "name", {"task_id": BUILD, "skill_id": NOTES}),
    "skill-new-content": ("skills.update", "content", {"task_id": BUILD, "skill_id": NOTES}),
}
MOST = effort(256, 1024) * 1024
LONG = {
    "dots": "a.",
    "dashes": "sk-",
    "tokens": "eyJ-",
    "token-parts": "eyJaaaaaaaaaa.x",
    "schemes": "a://",
    "users": "a://b:",
    "keys": "-----BEGIN ",
    "one-user": "https://u" + "x" * MOST,
}
EXAMPLES = ["<password>", "$DB_PASSWORD", "${DB_PASSWORD}", "{{password}}", "****", "PASSWORD"]


@pytest.mark.anyio
@pytest.mark.parametrize("name", KEPT)
async def test_a_secret_is_refused_and_not_told_back(kit: Kit, name: str) -> None:
    tool, field, arguments = KEPT[name]
    error = await refused(kit, tool, **arguments, **{field: f"because of {STRIPE}, see there"})
    assert error["type"] == "invalid_arguments"
    assert error["message"].startswith(f"{field} holds what looks like a Stripe key")
    assert STRIPE not in str(error)
    columns = (history.c.reason, tasks.c.status_reason, skills.c.name, skill_versions.c.content)
    for column in columns:
        kept = await kit.app.gate.database.read(
            lambda one, column=column: one.execute(select(column)).scalars().all()
        )
        assert STRIPE not in str(kept)


@pytest.mark.anyio
async def test_a_job_whose_result_is_refused_still_runs(kit: Kit) -> None:
    told = {"steps": [{"log": f"pushed with {STRIPE}"}]}
    end = {"job_id": BUILDING, "status": "completed"}
    error = await refused(kit, "operator.job.finish", **end, result=told)
    assert (error["type"], STRIPE in str(error)) == ("invalid_arguments", False)
    job = await result(kit, "db.job.get", job_id=BUILDING)
    assert (job["status"], job["result"]) == ("running", None)
    ended = await result(kit, "operator.job.finish", **end, result={"log": "pushed with env:KEY"})
    assert ended["result"] == {"log": "pushed with env:KEY"}


@pytest.mark.anyio
async def test_a_reason_that_speaks_of_secrets_is_kept(kit: Kit) -> None:
    reason = "the password was rotated; it is in env:DB_PASSWORD"
    assert await result(kit, "db.system_setting.create", PM, **SETTING, reason=reason)


@pytest.mark.anyio
async def test_a_secret_that_was_stored_before_is_put_into_quarantine(kit: Kit) -> None:
    row = {
        "id": ID.format("d7"),
        "version": 1,
        "name": "Old",
        "content": f"<!-- {STRIPE} -->",
        "scope": "user",
        "scope_id": "alice",
        "owner_id": "alice",
        "created_at": "2026-01-02T00:00:00.000000Z",
        "updated_at": "2026-01-02T00:00:00.000000Z",
    }
    await kit.app.gate.database.write(lambda one: one.execute(insert(skills), row))
    found = await result(kit, "operator.skill.rescan")
    assert found["quarantined"] == [
        {
            "skill_id": row["id"],
            "name": "Old",
            "category": "secret",
            "triggering_text": "a Stripe key",
            "field": "content",
        }
    ]
    error = await refused(kit, "operator.skill.release", skill_id=row["id"])
    assert error["message"] == (
        "It would be refused (secret: 'a Stripe key'). Change its name or text."
    )


@pytest.mark.parametrize("name", LONG)
def test_a_long_text_is_searched_in_time(name: str) -> None:
    text = LONG[name] * max(1, MOST // len(LONG[name]))
    began = time.process_time()
    assert secret_in("", text) is None
    assert time.process_time() - began < 5, "quadratic takes minutes"


def test_a_hyphenated_word_is_no_key() -> None:
    assert secret_in("", "See sk-learn-compatible-estimators-guide.") is None
    assert secret_in("", "sk-proj-" + "aB3" * 16) == "an OpenAI or Anthropic key"


@pytest.mark.parametrize("password", EXAMPLES)
def test_a_url_of_an_example_holds_no_password(password: str) -> None:
    assert secret_in("", f"Use postgresql://alice:{password}@db.example/app.") is None
    found = secret_in("", "Use postgresql://alice:hunter22@db.example/app.")
    assert found == "a URL with a password"


SLACK = "xoxb-" + "1234567890ab"
SHORT: dict[str, tuple[str, dict[str, Any]]] = {
    "user": ("operator.user.create", {"user_id": "carol", "display_name": SLACK}),
    "group": ("operator.group.create", {"group_id": "cooks", "display_name": SLACK}),
    "media-type": (
        "artifact.put",
        {
            "task_id": BUILD,
            "path": "a",
            "content_bytes_base64": "",
            "content_type": f"text/plain; x={SLACK}",
        },
    ),
    "condition": (
        "operator.access_rule.create",
        {
            "effect": "deny",
            "resource_pattern": "db.task.get",
            "conditions": {"arguments": {"task_id": [SLACK]}},
        },
    ),
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", SHORT)
async def test_short_fields_are_searched_too(kit: Kit, name: str) -> None:
    tool, arguments = SHORT[name]
    error = await refused(kit, tool, **arguments)
    assert error["type"] == "invalid_arguments"
    assert "a Slack token" in error["message"]
    assert SLACK not in str(error)


@pytest.mark.anyio
async def test_the_audit_keeps_a_scope_id_only_if_it_has_the_form_of_one(kit: Kit) -> None:
    for scope_id in (SLACK, BUILD):
        given: Any = {"scope_type": "task", "scope_id": scope_id, "key": "a.b"}
        await kit.call("db.preference.get", PM_OF_ALICE, **given)
    rows = await kit.audit_rows()
    assert [one["task_id"] for one in rows][-2:] == [None, BUILD]

"""Models: what operators describe, and where nodes have it now."""

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert
from tests.packs.orchestrator.calls import ABSENT, ID, PM, refused, result
from tests.packs.orchestrator.node_calls import (
    LOCAL,
    NODE,
    NOW,
    OTHER_NODE,
    SANDBOX,
    count_statements,
    every_page,
    report,
    set_clock,
)

from toolgate.gate.principal import of_node
from toolgate.packs.orchestrator.models import MAX_LISTED_NODES
from toolgate.packs.orchestrator.sql.records import PAGE_BYTES
from toolgate.packs.orchestrator.sql.tables import models
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

LLAMA = ID.format("f1")
NO_MODEL = {"type": "not_found", "message": "Model not found"}
STRIPE_KEY = "sk_live_" + "0" * 24
FILE = {"artifact_type": "gguf", "sha256": "a" * 64, "size_bytes": 2**40}


def has(model: str, status: str, version: str | None = None) -> dict[str, Any]:
    return {"model": model, "status": status} | ({"version": version} if version else {})


async def places(kit: Kit, model_id: str = LLAMA) -> list[tuple[str, str | None, str]]:
    """Where a model is, by the model itself and by the list, which must agree."""
    one = await result(kit, "model.get", PM, model_id=model_id)
    listed = {entry["id"]: entry for entry in await every_page(kit, "model.list", 200)}
    assert listed[model_id]["availability"] == one["availability"]
    assert listed[model_id]["availability_total"] == len(one["availability"])
    return [(on["node_slug"], on["version"], on["status"]) for on in one["availability"]]


async def test_models_are_listed_by_name(kit: Kit) -> None:
    names = ["llama-guard3", "llama3", "qwen2.5-coder", "qwen3.5:0.8b"]
    found = (await result(kit, "model.list", PM))["entries"]
    assert [one["name"] for one in found] == names
    assert found[1]["vendor"] == "Meta"
    assert [one["name"] for one in await every_page(kit, "model.list", 1)] == names


async def test_a_model_is_read_with_versions_and_artifacts(kit: Kit) -> None:
    model = await result(kit, "model.get", PM, model_id=LLAMA)
    (version,) = model["versions"]
    assert (model["name"], version["version"]) == ("llama3", "8b")
    assert version["capabilities"]["context_length"] == 8192
    (artifact,) = version["artifacts"]
    assert (artifact["artifact_type"], artifact["size_bytes"]) == ("ollama", 4661211808)
    assert (await result(kit, "model.get", model_id=LLAMA.upper()))["id"] == LLAMA


async def test_an_unknown_model_is_not_found(kit: Kit) -> None:
    for tool, more in (
        ("model.get", {}),
        ("operator.model.update", {"vendor": "x"}),
        ("operator.model.delete", {}),
        ("operator.model.add_version", {"version": "1"}),
    ):
        assert await refused(kit, tool, model_id=ABSENT, **more) == NO_MODEL
    gone = {"type": "not_found", "message": "Version not found"}
    for model_id, version in ((ABSENT, "8b"), (LLAMA, "9b")):
        which = {"model_id": model_id, "version": version}
        assert await refused(kit, "operator.model.remove_version", **which) == gone
        assert await refused(kit, "operator.model.add_artifact", **which, **FILE) == gone
    for name in ("llama3", "../x", "x" * 256):
        assert await refused(kit, "model.get", model_id=name) == NO_MODEL
    assert (await result(kit, "model.get", model_id=LLAMA.upper()))["id"] == LLAMA


async def test_what_a_node_reports_shows_at_once_and_goes_with_the_node(kit: Kit) -> None:
    set_clock(kit, NOW)
    assert await places(kit) == [], "the node of the demo data is inactive"
    for status in ("pulling", "loading", "available", "evicted", "failed"):
        await report(kit, models=[has("llama3", status, "8b"), has("other", "available")])
        assert await places(kit) == [(LOCAL, "8b", status)]
    await result(kit, "worker_node.heartbeat", OTHER_NODE)
    both = [(SANDBOX, "8b", "available"), (LOCAL, "8b", "failed")]
    assert await places(kit) == both
    set_clock(kit, NOW + 60)
    await result(kit, "worker_node.heartbeat", NODE)
    set_clock(kit, NOW + 90)
    assert await places(kit) == both[1:], "the other was not seen for too long"
    await result(kit, "operator.node.update", node_slug=LOCAL, drained=True)
    assert await places(kit) == []
    await result(kit, "operator.node.update", node_slug=LOCAL, drained=False)
    assert await places(kit) == both[1:]
    await report(kit, models=[has("llama3", "available")])
    assert await places(kit) == [(LOCAL, None, "available")]
    await report(kit)
    assert await places(kit) == []


async def test_a_deleted_node_has_nothing_any_more(kit: Kit) -> None:
    await report(kit, models=[has("llama3", "available")])
    assert await places(kit) != []
    await result(kit, "operator.node.delete", node_slug=LOCAL)
    assert await places(kit) == []


async def test_a_list_names_the_first_nodes_and_counts_all(kit: Kit) -> None:
    set_clock(kit, NOW)
    many = MAX_LISTED_NODES + 3
    for number in range(many):
        slug = f"n{number:03d}"
        await result(kit, "operator.node.create", node_slug=slug)
        await report(kit, of_node(slug, "k"), models=[has("llama3", "available")])
    listed = {one["id"]: one for one in (await result(kit, "model.list"))["entries"]}[LLAMA]
    slugs = [one["node_slug"] for one in listed["availability"]]
    assert slugs == [f"n{number:03d}" for number in range(MAX_LISTED_NODES)]
    assert listed["availability_total"] == many
    assert len((await result(kit, "model.get", model_id=LLAMA))["availability"]) == many


async def test_the_number_of_statements_does_not_grow_with_versions_or_nodes(kit: Kit) -> None:
    before = [
        await count_statements(kit, "model.list"),
        await count_statements(kit, "model.get", model_id=LLAMA),
    ]
    for number in range(20):
        which = {"model_id": LLAMA, "version": f"v{number}"}
        await result(kit, "operator.model.add_version", **which)
        await result(kit, "operator.model.add_artifact", **which, **FILE)
    await report(kit, models=[has("llama3", "available", f"v{number}") for number in range(20)])
    await report(kit, OTHER_NODE, models=[has("llama3", "available", "v1")])
    after = [
        await count_statements(kit, "model.list"),
        await count_statements(kit, "model.get", model_id=LLAMA),
    ]
    assert before == after == [1, 4]
    found = await result(kit, "model.get", model_id=LLAMA)
    assert [len(one["artifacts"]) for one in found["versions"]] == [1] * 21
    assert len(found["availability"]) == 21


async def test_a_new_model_is_listed_on_every_server_at_once(
    kit: Kit, tmp_path: Path, database_url: str
) -> None:
    settings: dict[str, Any] = {"database__url": database_url, "packs__enabled": ["orchestrator"]}
    async with opened_kit(tmp_path, **settings) as other:
        created = await result(kit, "operator.model.create", name="mistral", vendor="Mistral AI")
        names = [one["name"] for one in (await result(other, "model.list"))["entries"]]
        assert "mistral" in names
        await report(other, models=[has("mistral", "available")])
        assert await places(kit, created["id"]) == [(LOCAL, None, "available")]
        await result(other, "operator.model.delete", model_id=created["id"])
        assert await refused(kit, "model.get", model_id=created["id"]) == NO_MODEL


async def test_a_model_is_changed_and_deleted_with_all_that_belongs_to_it(kit: Kit) -> None:
    given = {"model_id": LLAMA, "name": "llama3.1", "description": "Newer."}
    changed = await result(kit, "operator.model.update", **given)
    assert (changed["name"], changed["vendor"]) == ("llama3.1", "Meta")
    error = await refused(kit, "operator.model.update", model_id=LLAMA)
    assert error["message"] == "one of name, vendor and description must be given"
    taken = await refused(kit, "operator.model.update", model_id=LLAMA, name="llama-guard3")
    assert taken["type"] == "conflict"
    assert (await refused(kit, "operator.model.create", name="llama3.1"))["type"] == "conflict"
    await result(kit, "operator.model.remove_version", model_id=LLAMA, version="8b")
    assert (await result(kit, "model.get", model_id=LLAMA))["versions"] == []
    again = await result(kit, "operator.model.add_version", model_id=LLAMA, version="8b")
    assert again["artifacts"] == []
    await result(kit, "operator.model.delete", model_id=LLAMA)
    assert await refused(kit, "model.get", model_id=LLAMA) == NO_MODEL


async def test_versions_and_artifacts_are_limited_and_unique(kit: Kit) -> None:
    which = {"model_id": LLAMA, "version": "8b"}
    error = await refused(kit, "operator.model.add_version", **which)
    assert (error["type"], "8b" in error["message"]) == ("conflict", True)
    for _ in range(9):
        await result(kit, "operator.model.add_artifact", **which, **FILE)
    error = await refused(kit, "operator.model.add_artifact", **which, **FILE)
    assert error["message"] == "A version has at most 10 artifacts. Remove some first."
    for bad in ({"sha256": "A" * 64}, {"size_bytes": -1}, {"artifact_type": "zip"}):
        error = await refused(kit, "operator.model.add_artifact", **which, **(FILE | bad))
        assert (error["type"], next(iter(bad)) in str(error)) == ("invalid_arguments", True)


async def test_no_secret_gets_into_a_model(kit: Kit) -> None:
    which = {"model_id": LLAMA, "version": "8b"}
    uri = "https://me:word@models.example.com/llama3.gguf"
    made = await result(kit, "operator.model.add_artifact", **which, **FILE, source_uri=uri)
    assert made["source_uri"] == "https://models.example.com/llama3.gguf"
    signed = f"{made['source_uri']}?X-Amz-Signature=abc"
    for tool, given in (
        ("operator.model.add_artifact", {**which, **FILE, "source_uri": signed}),
        ("operator.model.add_artifact", {**which, **FILE, "cache_path": f"a/{STRIPE_KEY}"}),
        ("operator.model.create", {"name": "x", "description": STRIPE_KEY}),
        (
            "operator.model.add_version",
            {"model_id": LLAMA, "version": "9b", "default_parameters": {"api_key": "hunter22"}},
        ),
    ):
        error = await refused(kit, tool, **given)
        assert error["type"] == "invalid_arguments"
        assert STRIPE_KEY not in str(error)
        assert "hunter22" not in str(error)


async def test_pages_of_models_survive_changes_and_are_bounded_in_bytes(kit: Kit) -> None:
    large = {"vendor": None, "description": "x" * 16000, "created_at": "t", "updated_at": "t"}
    rows = [
        {"id": f"{at:08d}-0000-4000-8000-000000000000", "name": f"m{at:03d}", **large}
        for at in range(150)
    ]
    await kit.app.gate.database.write(lambda one: one.execute(insert(models), rows))
    page = await kit.call("model.list", limit=200)
    assert len(page.raw) < PAGE_BYTES + 100_000
    assert len(await every_page(kit, "model.list", 200)) == 154
    first = await result(kit, "model.list", limit=2)
    assert [one["name"] for one in first["entries"]] == ["llama-guard3", "llama3"]
    await result(kit, "operator.model.delete", model_id=LLAMA)
    await result(kit, "operator.model.create", name="llama4")
    second = await result(kit, "model.list", limit=2, cursor=first["next_cursor"])
    assert [one["name"] for one in second["entries"]] == ["llama4", "m000"]
    nodes = (await result(kit, "node.list", limit=1))["next_cursor"]
    assert (await refused(kit, "model.list", cursor=nodes))["type"] == "invalid_arguments"

"""What a node does with its own key: it speaks for itself, and for nobody else."""

from typing import Any

import pytest
from tests.packs.orchestrator.calls import refused, result
from tests.packs.orchestrator.node_calls import (
    LOCAL,
    NODE,
    NOW,
    OTHER_NODE,
    SANDBOX,
    node,
    report,
    set_clock,
)

from toolgate.gate.principal import Kind
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

ABSENT = {"type": "not_found", "message": "Node not found"}
STRIPE_KEY = "sk_live_" + "0" * 24
OWN_TOOLS = ("register", "heartbeat", "get_config")


async def made(kit: Kit, slug: str = "worker-02", **more: Any) -> Any:
    return await result(kit, "operator.node.create", node_slug=slug, **more)


async def test_a_node_is_made_with_a_key_that_is_its_own(kit: Kit) -> None:
    created = await made(kit, display_name="Local worker 02", config={"a": 1})
    assert created["node"]["status"] == "registered"
    holder = await kit.app.credentials.holder(created["key"])
    assert holder is not None
    assert (holder.kind, holder.roles, holder.agent_type) == (Kind.NODE, frozenset(), None)
    told = await result(kit, "worker_node.register", holder)
    assert (told["node_slug"], told["status"]) == ("worker-02", "active")
    (key,) = [one for one in await kit.app.keys.list() if one["node_id"]]
    assert (key["node_id"], key["role"], key["agent_type"]) == ("worker-02", None, None)
    again = await refused(kit, "operator.node.create", node_slug="worker-02")
    assert again["type"] == "conflict"


async def test_the_audit_names_the_node_and_its_rule(kit: Kit) -> None:
    await result(kit, "worker_node.heartbeat", NODE)
    await refused(kit, "worker_node.heartbeat", NODE, node_slug=SANDBOX)
    own, foreign = (await kit.audit_rows())[-2:]
    assert (own["subject_type"], own["subject_id"]) == ("node", "key:local")
    assert (own["decision"], own["rule"]) == ("allow", "node-reports-itself")
    assert (foreign["decision"], foreign["rule"]) == ("deny", "out-of-scope")


@pytest.mark.parametrize("tool", OWN_TOOLS)
async def test_another_node_is_as_absent_as_none(kit: Kit, tool: str) -> None:
    for slug in (SANDBOX, "nobody", "../x", "WORKER-01"):
        assert await refused(kit, f"worker_node.{tool}", NODE, node_slug=slug) == ABSENT
    before = await node(kit, SANDBOX)
    assert before["last_seen_at"] == "2026-01-05T09:00:00.000000Z"
    told = await result(kit, f"worker_node.{tool}", NODE, node_slug=LOCAL)
    assert told["node_slug"] == LOCAL


async def test_an_operator_says_which_node_is_meant(kit: Kit) -> None:
    error = await refused(kit, "worker_node.heartbeat")
    assert error["message"] == "node_slug is required for a caller that is not a node"
    assert (await result(kit, "worker_node.heartbeat", node_slug=LOCAL))["status"] == "active"
    assert await refused(kit, "worker_node.heartbeat", node_slug="nobody") == ABSENT


async def test_with_its_node_a_key_ends(kit: Kit) -> None:
    key = (await made(kit))["key"]
    holder = await kit.app.keys.look_up(key)
    assert holder is not None
    await report(kit, holder, images=[{"image_ref": "a", "status": "available"}])
    await result(kit, "operator.node.delete", node_slug="worker-02")
    assert await kit.app.keys.look_up(key) is None
    assert await refused(kit, "node.get", node_slug="worker-02") == ABSENT
    assert await refused(kit, "worker_node.heartbeat", holder) == ABSENT, "within that second"
    assert (await made(kit))["key"] != key
    assert await kit.app.keys.look_up(key) is None, "the next node of this slug has another key"
    assert await refused(kit, "operator.node.delete", node_slug="nobody") == ABSENT


async def test_a_key_can_be_replaced(kit: Kit) -> None:
    old = (await made(kit))["key"]
    new = (await result(kit, "operator.node.replace_key", node_slug="worker-02"))["key"]
    assert await kit.app.keys.look_up(old) is None
    assert await kit.app.keys.look_up(new) is not None
    assert await refused(kit, "operator.node.replace_key", node_slug="nobody") == ABSENT


async def test_a_dry_run_makes_neither_node_nor_key(kit: Kit) -> None:
    before = await kit.app.keys.list()
    outcome = await kit.call("operator.node.create", dry_run=True, node_slug="worker-02")
    assert await kit.app.keys.look_up(outcome.body["result"]["key"]) is None
    assert await kit.app.keys.list() == before
    assert await refused(kit, "node.get", node_slug="worker-02") == ABSENT


async def test_a_registration_keeps_what_it_leaves_out(kit: Kit) -> None:
    said = {"display_name": "Büro 😀", "metadata": {"rack": 3}}
    await result(kit, "worker_node.register", NODE, **said)
    await result(kit, "worker_node.register", NODE, worker_api_target_url="https://w1.example:8443")
    found = await node(kit)
    assert {name: found[name] for name in said} == said
    assert found["worker_api_target_url"] == "https://w1.example:8443"


async def test_a_report_replaces_the_one_before(kit: Kit) -> None:
    set_clock(kit, NOW)
    one, two = ({"image_ref": name, "status": "available"} for name in ("a", "b"))
    await report(kit, capabilities={"cores": 4, "gpu": True}, images=[one, two])
    await report(kit, capabilities={"cores": 8}, images=[two | {"status": "evicted"}])
    found = await node(kit)
    assert found["capabilities"] == {"cores": 8}
    assert [(image["image_ref"], image["status"]) for image in found["images"]] == [
        ("b", "evicted")
    ]
    assert (await node(kit, SANDBOX))["images"] != [], "another's report stays"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"capabilities": {"a": "x" * 256 * 1024}}, "at most 262144"),
        ({"images": [{"image_ref": "a", "status": "available"}] * 2}, "images[1] names 'a'"),
        ({"models": [{"model": "a", "status": "available"}] * 1001}, "1000"),
        ({"models": [{"model": "a", "status": "gone"}]}, "available"),
        ({"models": [{"model": "a\x00", "status": "available"}]}, "printable"),
        ({"capabilities": [1]}, "capabilities"),
        ({"capabilities": {"a": 2**70}}, "cannot be kept"),
    ],
    ids=["size", "twice", "many", "status", "nul", "array", "integer"],
)
async def test_a_report_that_cannot_be_kept_names_what_is_wrong(
    kit: Kit, given: dict[str, Any], named: str
) -> None:
    whole: dict[str, Any] = {"capabilities": {}, **given}
    error = await refused(kit, "worker_node.report_capabilities", NODE, **whole)
    assert error["type"] == "invalid_arguments"
    assert named in str(error)


@pytest.mark.parametrize(
    "facts",
    [{"api_key": "hunter22"}, {"a": [STRIPE_KEY]}, {"token": "abc"}, {"u": "ftp://me:word@host/"}],
    ids=["name", "format", "token", "url"],
)
async def test_no_secret_gets_in(kit: Kit, facts: dict[str, Any]) -> None:
    for tool, given in (
        ("worker_node.register", {"node_slug": LOCAL, "metadata": facts}),
        ("worker_node.report_capabilities", {"node_slug": LOCAL, "capabilities": facts}),
        ("operator.node.update", {"node_slug": LOCAL, "metadata": facts}),
        ("operator.node.update", {"node_slug": LOCAL, "config": facts}),
        ("operator.node.create", {"node_slug": "n", "metadata": facts}),
    ):
        error = await refused(kit, tool, **given)
        assert (error["type"], "secret store" in error["message"]) == ("invalid_arguments", True)
        assert "hunter22" not in str(error)
        assert STRIPE_KEY not in str(error)
    assert (await node(kit))["metadata"] == {}


async def test_what_a_node_says_of_an_error_is_kept_without_secrets(kit: Kit) -> None:
    version = (await node(kit))["config_version"]
    told = f"cannot reach https://me:word@host/x with {STRIPE_KEY}"
    said = {"config_version": version, "status": "failed", "error": told}
    await result(kit, "worker_node.acknowledge_config", NODE, **said)
    kept = (await node(kit))["config_ack_error"]
    assert kept == "cannot reach [redacted]host/x with [redacted]"


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("login failed: password=hunter2 at db1", "login failed: password=[redacted] at db1"),
        ("DB_PASSWORD: 'hunter two', user=x", "DB_PASSWORD: [redacted], user=x"),
        ('{"api_key": "hunter2"}', '{"api_key": [redacted]}'),
        ("Authorization: Basic aHVudGVyMg== refused", "Authorization: [redacted] refused"),
        ("GET /?token=hunter2&a=1", "GET /?token=[redacted]&a=1"),
        ("a\x1b[2Jb\u202ec\u200bd\u2028e", "a\ufffd[2Jb\ufffdc\ufffdd\ufffde"),
        ("line 1\n\tunexpected token: }", "line 1\n\tunexpected token: }"),
    ],
    ids=["password", "quoted", "json", "header", "query", "unseen", "plain"],
)
async def test_an_error_is_kept_without_assigned_secrets_and_unseen_characters(
    kit: Kit, told: str, kept: str
) -> None:
    said = {"config_version": (await node(kit))["config_version"], "status": "failed"}
    await result(kit, "worker_node.acknowledge_config", NODE, **said, error=told)
    assert (await node(kit))["config_ack_error"] == kept


@pytest.mark.parametrize("code", [0x1B, 0x9B, 0x202E, 0x200B, 0x2028, 0xE0041], ids=hex)
async def test_no_character_that_nobody_sees_gets_in(kit: Kit, code: int) -> None:
    text = f"a{chr(code)}b"
    for tool, given in (
        ("worker_node.register", {"display_name": text}),
        ("worker_node.register", {"metadata": {"a": ["b", {"c": text}]}}),
        ("worker_node.register", {"metadata": {text: 1}}),
        ("worker_node.report_capabilities", {"capabilities": {"a": text}}),
        ("operator.node.update", {"metadata": {"a": text}}),
    ):
        error = await refused(kit, tool, **given, node_slug=LOCAL)
        assert error["type"] == "invalid_arguments", (tool, given)
        assert chr(code) not in error["message"]
    several_lines = {"metadata": {"about": "Büro 😀\n\tsecond line"}}
    await result(kit, "worker_node.register", NODE, **several_lines)


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://me:word@w1.example:8443/api", "https://w1.example:8443/api"),
        ("http://token@[::1]:80", "http://[::1]:80"),
        ("HTTPS://W1.example/", "https://w1.example/"),
    ],
)
async def test_a_url_is_kept_without_user_and_password(kit: Kit, url: str, kept: str) -> None:
    await result(kit, "worker_node.register", OTHER_NODE, worker_api_target_url=url)
    assert (await node(kit, SANDBOX))["worker_api_target_url"] == kept
    created = await made(kit, worker_api_target_url=url)
    assert created["node"]["worker_api_target_url"] == kept


@pytest.mark.parametrize(
    "url",
    ["w1", "ftp://w1", "https://", "https://w1/?key=1", "https://w1/#a", "https://w1:x/", "a\tb"],
)
async def test_what_is_no_plain_web_address_is_refused(kit: Kit, url: str) -> None:
    error = await refused(kit, "worker_node.register", NODE, worker_api_target_url=url)
    assert error["type"] == "invalid_arguments"
    assert "worker_api_target_url" in error["message"]


async def test_a_change_of_nothing_is_refused(kit: Kit) -> None:
    error = await refused(kit, "operator.node.update", node_slug=LOCAL)
    assert (error["type"], "something to change" in error["message"]) == ("invalid_arguments", True)
    assert await refused(kit, "operator.node.update", node_slug="nobody", drained=True) == ABSENT


@pytest.mark.parametrize("slug", ["", "-a", "a-", "A", "a b", "../x", "a" * 64, "ä"])
async def test_the_slug_of_a_new_node_is_plain(kit: Kit, slug: str) -> None:
    error = await refused(kit, "operator.node.create", node_slug=slug)
    assert error["type"] == "invalid_arguments"
    assert "node_slug" in error["message"]

"""Rules that name tools: a name that no tool has would forbid nothing, and nobody would notice."""

from pathlib import Path
from typing import Any

import pytest
from tests.gate.tools import a_tool, offer, words
from tests.needed_packs import needs_pack

from toolgate.cli.policy import ENDING
from toolgate.extend.tools import OWN
from toolgate.gate.offer import Offer
from toolgate.gate.rules import BadPolicy, check, rules_of, skipped_in
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio

UNKNOWN = [
    ('resource == Tool::"get_documnt"', "", 'no tool "get_documnt". Did you mean get_document?'),
    ('resource in Tool::"appdata"', "", 'there is no tool "appdata".'),
    ("resource", 'when { resource == Tool::"helth_check" }', "Did you mean health_check?"),
    ("resource", 'when { resource.name == "get_documnt" }', "Did you mean get_document?"),
    ("resource", 'when { ["get_user", "get_usr"].contains(resource.name) }', 'never "get_usr"'),
    ("resource", 'when { resource.name like "get_docs*" }', 'is never like "get_docs*".'),
    ("resource", 'when { resource.pack == "apdata" }', "Did you mean appdata?"),
    ("resource", 'when { resource.family != "documnts" }', "Did you mean documents?"),
    ("resource", 'when { resource.namespace == "get_documnt" }', "resource.namespace is never"),
]
KNOWN = [
    ('resource == Tool::"get_document"', ""),
    ("resource", 'when { resource.name like "get_*" && resource.pack == "appdata" }'),
]


def rule_folder(tmp_path: Path, text: str, name: str = "team.cedar") -> Path:
    folder = tmp_path / "rules"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(("scope", "condition", "says"), UNKNOWN)
async def test_a_name_that_no_tool_has_stops_the_start(
    tmp_path: Path, scope: str, condition: str, says: str
) -> None:
    folder = rule_folder(tmp_path, f"\nforbid (principal, action, {scope}) {condition};")
    with pytest.raises(BadPolicy) as refused:
        async with opened_kit(tmp_path, policy__folder=folder):
            pass
    assert f"{folder}/team.cedar, line 2: " in str(refused.value)
    assert says in str(refused.value)


@pytest.mark.parametrize(("scope", "condition"), KNOWN)
async def test_names_that_tools_have_are_taken(tmp_path: Path, scope: str, condition: str) -> None:
    folder = rule_folder(tmp_path, f"forbid (principal, action, {scope}) {condition};")
    async with opened_kit(tmp_path, policy__folder=folder) as kit:
        assert (await kit.call("get_document")).error_type == "not_found"


def reloading(tmp_path: Path) -> dict[str, Any]:
    tools = tmp_path / "tools.yaml"
    tools.write_text("[]\n")
    text = 'forbid (principal, action, resource == Tool::"later.on");'
    return {
        "policy__folder": rule_folder(tmp_path, text),
        "extend__tools": tools,
        "extend__reload": True,
    }


async def test_tools_that_come_and_go_are_warned_of_whenever_they_change(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened_kit(tmp_path, **reloading(tmp_path)) as kit:
        assert 'there is no tool "later.on"' in caplog.text
        caplog.clear()
        await kit.app.gate.catalogue.renew(*offer(a_tool("later.on")))
        assert "later.on" not in caplog.text
        await kit.app.gate.catalogue.renew(Offer(pack=OWN))
        assert 'there is no tool "later.on"' in caplog.text


async def test_a_switch_is_no_reason_to_read_the_rules_or_to_warn_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = reloading(tmp_path)
    (settings["policy__folder"] / "team.cedar.bak").touch()
    async with opened_kit(tmp_path, **settings) as kit:
        assert "team.cedar.bak is not read" in caplog.text
        caplog.clear()
        (settings["policy__folder"] / "team.cedar").unlink()
        await kit.app.gate.catalogue.announce()
        assert caplog.messages == []
        await kit.app.gate.catalogue.renew(*offer(a_tool("later.on")))
        await kit.app.gate.catalogue.renew(Offer(pack=OWN))
        assert ["later.on" in one for one in caplog.messages] == [True]


@needs_pack("orchestrator")
@pytest.mark.parametrize(
    "rule",
    [
        'forbid (principal, action, resource == Tool::"artifact.put");',
        'forbid (principal, action, resource) when { resource.name == "artifact.put" };',
    ],
    ids=["head", "condition"],
)
async def test_a_tool_of_a_pack_that_is_not_enabled_is_told_as_such(
    tmp_path: Path, rule: str
) -> None:
    with pytest.raises(BadPolicy) as refused:
        async with opened_kit(tmp_path, policy__folder=rule_folder(tmp_path, rule)):
            pass
    told = '"artifact.put". It is in pack orchestrator, which is not enabled (setting packs.enab'
    assert told in str(refused.value)


async def test_a_rules_id_is_its_own(tmp_path: Path) -> None:
    text = '@id("admin-everything")\nforbid (principal, action, resource);'
    with pytest.raises(BadPolicy) as refused:
        async with opened_kit(tmp_path, policy__folder=rule_folder(tmp_path, text)):
            pass
    assert "team.cedar, line 1: " in str(refused.value)
    assert '@id("admin-everything") is taken by roles.cedar, line 13.' in str(refused.value)


async def test_files_that_are_not_read_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    nobody = "forbid (principal, action, resource);"
    folder = rule_folder(tmp_path, nobody, "copy.cedar.bak")
    (folder / "deeper").mkdir()
    (folder / "deeper/more.cedar").write_text(nobody)
    (folder / "notes.md").write_text("about these rules")
    async with opened_kit(tmp_path, policy__folder=folder) as kit:
        assert (await kit.call("list_collections")).error is None
    assert skipped_in(folder) == [folder / "copy.cedar.bak", folder / "deeper/more.cedar"]
    for file in skipped_in(folder):
        assert f"{file} is not read" in caplog.text
    assert "notes.md" not in caplog.text


async def test_a_folder_without_rules_and_a_misspelled_ending_are_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = rule_folder(tmp_path, "forbid (principal, action, resource);", "team.ceder")
    (folder / f"team{ENDING}").touch()
    (folder / ".gitignore").touch()
    async with opened_kit(tmp_path, policy__folder=folder):
        pass
    assert skipped_in(folder) == [folder / "team.ceder"]
    assert f"{folder} has no file *.cedar, so no rule of your own applies" in caplog.text
    assert f"{folder / 'team.ceder'} is not read" in caplog.text


async def test_the_ending_of_a_rule_file_may_be_in_capitals(tmp_path: Path) -> None:
    folder = rule_folder(tmp_path, "forbid (principal, action, resource);", "A.CEDAR")
    async with opened_kit(tmp_path, policy__folder=folder) as kit:
        assert (await kit.call("list_collections")).error_type == "not_found"


@pytest.mark.parametrize(
    "condition",
    [
        " || ".join(['resource.name == "x"'] * 600),
        " || ".join(['resource.name == "x"'] * 20_000),
        "(" * 3_000 + "true" + ")" * 3_000,
        "[" * 3_000 + "]" * 3_000 + " == 1",
    ],
    ids=["long", "very long", "brackets", "sets"],
)
def test_a_rule_that_is_too_large_is_refused_with_its_line(condition: str) -> None:
    with pytest.raises(BadPolicy, match=r"team\.cedar, line 2: the rule is too long or too deep"):
        check(
            rules_of(
                {"team.cedar": f"\nforbid (principal, action, resource) when {{ {condition} }};"}
            ),
            words(),
        )


def test_a_rule_may_name_many_tools() -> None:
    names = ", ".join(f'"tool_{number}"' for number in range(5_000))
    text = f"forbid (principal, action, resource) when {{ [{names}].contains(resource.name) }};"
    check(rules_of({"team.cedar": text}), words())

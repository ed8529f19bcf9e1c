"""A pack's rules speak of its own tools: they open and close nothing else."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.gate.tools import PUBLIC, USER, a_tool, offer

from toolgate.cli.checks import check_rules
from toolgate.gate.offer import AnyOffer
from toolgate.gate.rules import BadPolicy
from toolgate.settings import read_settings
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio

OPENS_ALL = '@id("all")\npermit (principal, action, resource) when { true };'
HIDES_ALL = '@id("none") forbid (principal, action, resource);'
FAILS = '@id("fails") forbid (principal, action, resource) when { 9223372036854775807 + 1 == 0 };'


def zoo(rules: str) -> list[AnyOffer]:
    (one,) = offer(a_tool("zoo.walk", pack="network"))
    return [replace(one, rules=rules, complete=True)]


async def test_a_permit_of_a_pack_opens_its_own_tools_alone(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, plugins=zoo(OPENS_ALL), demo_data=True) as kit:
        assert (await kit.call("zoo.walk", PUBLIC)).error is None
        for caller in (PUBLIC, USER):
            outcome = await kit.call("query_collection", caller, collection="apps")
            assert outcome.error_type == "not_found"


@pytest.mark.parametrize("rules", [HIDES_ALL, FAILS], ids=["forbids", "fails"])
async def test_a_forbid_of_a_pack_hides_its_own_tools_alone(tmp_path: Path, rules: str) -> None:
    async with opened_kit(tmp_path, plugins=zoo(rules)) as kit:
        assert (await kit.call("zoo.walk")).error_type == "not_found"
        assert (await kit.call("health_check")).error is None


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ('resource.pack == "netwrk"', "Did you mean network?"),
        ('resource.pack == "appdata"', 'resource.pack is never "appdata"'),
        ('resource.name == "zoo.wlak"', "Did you mean zoo.walk?"),
    ],
    ids=["misspelt pack", "other pack", "misspelt tool"],
)
async def test_a_name_that_is_not_of_the_pack_stops_the_start(
    tmp_path: Path, condition: str, says: str
) -> None:
    rules = f"\npermit (principal, action, resource) when {{ {condition} }};"
    with pytest.raises(BadPolicy, match=f"^network/rules.cedar, line 2: .*{re.escape(says)}"):
        async with opened_kit(tmp_path, plugins=zoo(rules)):
            pass


def test_doctor_names_the_packs_whose_rules_apply(tmp_path: Path) -> None:
    settings = read_settings(flags={"data": tmp_path}, environment={})
    assert check_rules(settings).message == "valid: built-in, of pack appdata."

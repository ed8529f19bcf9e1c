"""The door looks at who comes in: a pack that would get in the way of others is refused."""

import re
from dataclasses import replace
from importlib.metadata import EntryPoint, EntryPoints
from typing import Any

import pytest
from docs.generate import ENDPOINTS
from sqlalchemy import MetaData, Table
from tests.gate.tools import a_tool
from typer.main import get_command

from toolgate import packs
from toolgate.cli.main import commands
from toolgate.gate.offer import COMMANDS, PATHS, BadOffer, check_offer
from toolgate.identity.oauth.server import ALIASES
from toolgate.pack import SENTENCE, Family, Offer, Pack, Prompt, Resource, Route, Schema
from toolgate.settings import read_settings

MIGRATIONS = "toolgate.db.migrations.versions"
PROMPT = Prompt("forecast", "Forecast", "What comes.", (), lambda _: "")
RESOURCE = Resource(
    uri="weather://now", name="now", title="Now", description="", tool="x", arguments={}
)


def offer_of(name: str = "weather", **fields: Any) -> Offer[Any, Any]:
    return Offer(pack=Pack(name, SENTENCE, "What the weather is."), **fields)


def schema(table: str = "weather_rows", version: str = "weather_version", **given: Any) -> Schema:
    tables = MetaData()
    Table(table, tables)
    return Schema(tables, given.get("migrations", MIGRATIONS), version)


def routed(path: str) -> tuple[Any, ...]:
    return (replace(a_tool("weather.get"), route=Route(path)),)


REFUSED = {
    "section": (offer_of("limits"), "'limits', field pack: toolgate has settings of that name"),
    "own": (offer_of("own"), "'own', field pack: tools of your own are called that"),
    "letters": (offer_of("My-Pack"), "'My-Pack', field pack: use a-z, 0-9 and _"),
    "command": (offer_of("audit", commands="a:b"), "field commands: toolgate has a command audit"),
    "commands": (
        offer_of(commands="comands"),
        "field commands: write it as module:function, not 'comands'",
    ),
    "family": (
        offer_of(tools=Family("weather", Pack("weather", SENTENCE, "It."))),
        "field tools: give the declared tools, such as tools=tuple(family.tools)",
    ),
    "function": (offer_of(tools=(offer_of,)), "field tools: one is a function. Give the declared"),
    "settings": (offer_of(settings=dict), "field settings: give a class that is derived from Sec"),
    "table": (offer_of(schema=schema("rows")), "field schema: call table rows weather_rows"),
    "version": (
        offer_of(schema=schema(version="alembic_version")),
        "field schema: call the version table weather_version, not alembic_version",
    ),
    "migrations": (
        offer_of(schema=schema(migrations="toolgate.policies")),
        "field schema: toolgate.policies has no file such as 0001_first.py",
    ),
    "revision": (
        offer_of(schema=schema(migrations="tests.packs.misnamed")),
        "field schema: 0002_more.py in tests.packs.misnamed has the revision 0003. Begin",
    ),
    "metrics": (offer_of(tools=routed("/metrics")), "weather.get has the route /metrics"),
    "below": (offer_of(tools=routed("/v1/tools/x")), "weather.get has the route /v1/tools/x"),
    "oauth": (offer_of(tools=routed("/authorize")), "weather.get has the route /authorize"),
    "prompts": (offer_of(prompts=(PROMPT, PROMPT)), "field prompts: two are called 'forecast'"),
    "resources": (
        offer_of(resources=(RESOURCE, RESOURCE)),
        "field resources: two are called 'weather://now'",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_pack_in_the_way_of_others_is_refused_by_name_and_field(case: str) -> None:
    offer, told = REFUSED[case]
    with pytest.raises(BadOffer, match=re.escape(told)):
        check_offer(offer, ())


def test_a_prompt_of_another_pack_is_not_replaced() -> None:
    other = offer_of("sea", prompts=(PROMPT,))
    with pytest.raises(BadOffer, match=r"field prompts: two are called 'forecast'.*pack 'sea'"):
        check_offer(offer_of(prompts=(PROMPT,)), (other,))


def test_a_pack_that_keeps_to_its_name_comes_in() -> None:
    good = offer_of(schema=schema(), prompts=(PROMPT,), resources=(RESOURCE,), commands="a:b")
    check_offer(replace(good, tools=routed("/weather/{city}")), packs.offers())


OFFER = offer_of("limits")


def test_it_is_refused_when_the_settings_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("limits", f"{__name__}:OFFER", packs.GROUP)
    monkeypatch.setattr(packs, "entry_points", EntryPoints([point]).select)
    with pytest.raises(BadOffer, match="'limits', field pack"):
        read_settings(flags={"packs.enabled": ["limits"]}, environment={})


def test_every_command_is_reserved() -> None:
    tree: Any = get_command(commands())
    assert set(tree.commands) == COMMANDS


def test_every_path_of_the_server_is_reserved() -> None:
    served = {word for where, _, _ in ENDPOINTS for word in re.findall(r"(/[\w./-]*)", where)}
    assert len(served) > 5
    told = {one for one in {*served, *ALIASES} if not one.startswith(tuple(PATHS - {"/"}))}
    assert told <= {"/"}

"""Packs come through one door: what is not enabled is not there, and none is known elsewhere."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect
from tests.servers import ROOT

from toolgate import packs
from toolgate.db.schemas import GATE
from toolgate.settings import BadSettings, every_setting, read_settings
from toolgate.testing import opened_kit

ENABLED = """
import json, sys
import anyio

async def main():
    from toolgate.app import opened
    from toolgate.settings import read_settings
    flags = {"data": sys.argv[1], "packs.enabled": ["backend"]}
    settings = read_settings(flags=flags, environment={})
    async with opened(settings) as app:
        print(json.dumps({
            "tools": [tool.name for tool in app.gate.catalogue],
            "modules": sorted(name for name in sys.modules if name.startswith("toolgate.packs.")),
        }))

anyio.run(main)
"""


def test_a_pack_that_is_not_enabled_is_not_imported(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ENABLED, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    assert {"get_user", "health_check", "generate_uuid"} <= {*found["tools"]}
    assert "get_document" not in found["tools"]
    assert {name.split(".")[2] for name in found["modules"]} == {"backend"}


@pytest.mark.anyio
async def test_a_pack_that_is_not_enabled_has_no_tables_and_no_rules(tmp_path: Path) -> None:
    async with opened_kit(tmp_path, packs__enabled=["backend"]) as kit:
        tables = await kit.app.gate.database.read(lambda c: inspect(c).get_table_names())
        others = {name for name in tables if not name.startswith("backend_")}
        assert others == {*GATE.tables.tables, GATE.version_table}
        assert (await kit.call("generate_uuid", version="4")).error is None
        assert (await kit.call("list_projects")).error_type == "not_found"
    async with opened_kit(tmp_path, demo_data=True) as kit:
        assert (await kit.call("list_projects")).body["pagination"]["total"] == 2


def test_settings_of_a_pack_that_is_not_enabled_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "toolgate.toml"
    file.write_text('[packs]\nenabled = ["backend"]\n[content]\ndefault_project = "p"\n')
    settings = read_settings(file=file, environment={"MCP_ENABLE_WRITES": "true"})
    assert settings.packs.enabled == ("backend",)
    assert "content" not in type(settings).model_fields
    file.write_text('[packs]\nenabled = ["backend"]\n[contnt]\ndefault_project = "p"\n')
    with pytest.raises(BadSettings, match=r"Unknown setting contnt\.default_project"):
        read_settings(file=file, environment={})


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (["contnt"], "packs.enabled: there is no pack 'contnt'. There are: appdata, backend"),
        (3, "packs.enabled"),
    ],
)
def test_a_pack_that_is_not_there_is_named_with_those_that_are(value: Any, told: str) -> None:
    with pytest.raises(BadSettings, match=re.escape(told)):
        read_settings(flags={"packs.enabled": value}, environment={})


SHIPPED = packs.offers(packs.SHIPPED)


@pytest.mark.parametrize("offer", SHIPPED, ids=packs.SHIPPED)
def test_a_pack_keeps_to_its_name(offer: Any) -> None:
    assert {tool.pack for tool in offer.tools} == {offer.pack}
    fields = every_setting().model_fields
    assert (offer.pack.name in fields) == (offer.settings is not None)
    if offer.schema:
        assert offer.schema.version_table == f"{offer.pack.name}_version"
        assert all(name.startswith(f"{offer.pack.name}_") for name in offer.schema.tables.tables)


def test_the_packs_with_all_of_their_tools_are_enabled_by_default() -> None:
    assert tuple(offer.pack.name for offer in SHIPPED if offer.complete) == packs.DEFAULT


NAMED_ELSEWHERE = {
    "ports/users.py",
    "db/migrations/versions/0013_namespaces.py",
}


def test_hardly_a_file_outside_the_packs_knows_one_by_name() -> None:
    source = ROOT / "src/toolgate"
    words = {"content", "network"}  # that mean something else, too
    names = [f'"{name}"' for name in packs.known_names() if name not in words]
    files = [*source.rglob("*.py"), *source.rglob("*.cedar")]
    outside = [one for one in files if source / "packs" not in one.parents]
    naming = [one for one in outside if any(name in one.read_text("utf-8") for name in names)]
    assert {one.relative_to(source).as_posix() for one in naming} == NAMED_ELSEWHERE

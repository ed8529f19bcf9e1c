"""The documentation is right: commands run, links lead somewhere, nothing is missing."""

import json
import re
import shutil
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml
from docs import house, picture
from docs.generate import ENDPOINTS, FOLDER, error_classes, stale, subcommands
from tests.docs.pages import PAGES, ROOT, blocks, fits, links
from tests.docs.shell import Shell
from tests.gate.tools import shipped, words
from tests.needed_packs import needs_pack
from tests.patience import PATIENT
from typer.main import get_command

from toolgate import packs
from toolgate.cli.main import commands
from toolgate.gate.catalogue import Catalogue
from toolgate.gate.limits import Limits
from toolgate.gate.rules import check, rules_of
from toolgate.sections import LimitSettings
from toolgate.settings import every_setting, setting_names

pytestmark = pytest.mark.timeout(10 * PATIENT)

GENERATED = set(FOLDER.glob("*.md"))
WRITTEN = [page for page in PAGES if page not in GENERATED]
RUN = [page for page in WRITTEN if any(b.language in ("console", "python") for b in blocks(page))]
PROGRAMS = ("bash", "curl", "jq")
READ_FIRST = ("README.md", "docs/tutorial/first-ten-minutes.md")
"""Pages whose commands are those that were installed; on the others they start cheaply."""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def marked(page: Path) -> Any:
    """A page, which may show what a pack that can be taken out does."""
    shown = any("orchestrator" in block.text for block in blocks(page))
    return pytest.param(page, marks=needs_pack("orchestrator")) if shown else page


@pytest.mark.parametrize("page", [*map(marked, RUN)], ids=name_of)
def test_what_a_page_shows_is_what_happens(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    text = page.read_text(encoding="utf-8")
    if missing := [one for one in PROGRAMS if f"{one} " in text and not shutil.which(one)]:
        pytest.skip(f"{name_of(page)}: {', '.join(missing)} is not installed")
    printed = ""
    with ExitStack() as stack:
        shell = Shell(
            tmp_path,
            stack,
            lambda: request.getfixturevalue("postgres_database"),
            installed=name_of(page) in READ_FIRST,
        )
        for block in blocks(page):
            if block.note == "output":
                assert fits(block.text, printed), printed
            elif block.language == "python" and block.note not in ("no-run", "file"):
                printed = shell.python(block.text)
            else:
                shell.run(block)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_lead_somewhere(page: Path) -> None:
    broken = [link for link in links(page) if not (page.parent / link).exists()]
    assert broken == []


@pytest.mark.parametrize("page", [*map(marked, PAGES)], ids=name_of)
def test_every_block_of_data_can_be_read(page: Path) -> None:
    for block in blocks(page):
        match block.language:
            case "json":
                json.loads(block.text)
            case "toml":
                every_setting().model_validate(tomllib.loads(block.text))
            case "yaml":
                yaml.safe_load(block.text)
            case "cedar":
                check(rules_of({"": block.text}), words())
            case language:
                assert language in ("console", "js", "python", "sh", "text"), (
                    f"a block in {language!r}"
                )


def test_the_store_of_counts_that_a_page_names_can_be_made() -> None:
    pages = [block.text for page in PAGES for block in blocks(page) if block.language == "toml"]
    stores = {every_setting().model_validate(tomllib.loads(text)).limits.store for text in pages}
    assert any("redis" in store for store in stores)
    for store in stores:
        Limits(LimitSettings(store=store))


def test_the_picture_shows_what_the_page_says() -> None:
    assert not picture.is_stale(), "run `python -m docs.picture`"


def test_the_picture_of_the_house_shows_the_import_graph() -> None:
    assert not house.is_stale(), "run `python -m docs.house`"


def test_generated_pages_are_fresh() -> None:
    assert stale() == [], "run `python -m docs.generate`"


def reference(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def test_every_tool_has_its_entry() -> None:
    page, tools = reference("tools.md"), Catalogue(packs.offers(packs.SHIPPED))
    assert [one.name for one in tools if f"\n## {one.name}\n" not in page] == []


def test_every_link_among_the_tools_leads_to_one() -> None:
    page = reference("tools.md")
    headings = re.findall(r"^## (.+)$", page, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", page)) - anchors == set()


@needs_pack("orchestrator")
def test_what_agents_cannot_do_names_a_tool_for_every_record() -> None:
    rows = re.findall(r"^\| (\w+) \| (.+) \| (.+) \|$", reference("tools.md"), re.MULTILINE)
    told = {kind: (agents, others) for kind, agents, others in rows if "`](#" in agents}
    assert set(told) == {"tasks", "jobs", "projects", "nodes", "models", "artifacts"}
    assert [kind for kind, (_, others) in told.items() if others == "none"] == ["artifacts"]


def test_every_setting_has_its_entry() -> None:
    page = reference("settings.md")
    assert [name for name in setting_names(every_setting()) if f"| `{name}` |" not in page] == []


def test_every_error_has_its_entry() -> None:
    page = reference("errors.md")
    assert [one for one in error_classes() if f"| `{one.__name__}` |" not in page] == []


def test_every_command_has_its_entry() -> None:
    page = reference("cli.md")
    assert [path for path in paths(get_command(commands())) if f"\n## {path}\n" not in page] == []


def paths(command: Any, path: str = "toolgate") -> list[str]:
    inner = dict(subcommands(command))
    return [path, *(one for name in inner for one in paths(inner[name], f"{path} {name}"))]


def test_every_rule_has_its_entry() -> None:
    page = reference("policies.md")
    assert [name for name, text in shipped().items() if text.strip() not in page] == []


def test_every_path_has_its_entry() -> None:
    told = " ".join(where for where, _, _ in ENDPOINTS)
    web = (ROOT / "src/toolgate/transports/web.py").read_text(encoding="utf-8")
    served = [word for word in web.split('"') if word.startswith("/") and len(word) > 1]
    assert served
    assert [path for path in served if path not in told] == []


@pytest.mark.parametrize("folder", ["", "gate", "transports", "transports/mcp", "identity"])
def test_every_module_has_its_place_in_the_code_map(folder: str) -> None:
    page = (ROOT / "docs/explanation/architecture.md").read_text()
    modules = [file.name for file in (ROOT / "src/toolgate" / folder).glob("[!_]*.py")]
    assert modules
    assert [name for name in modules if f"`{name}`" not in page] == []


def test_every_page_can_be_found_from_the_index() -> None:
    folder = ROOT / "docs"
    named = {(folder / link).resolve() for link in links(folder / "index.md")}
    decisions = folder / "decisions"
    pages = {page for page in PAGES if folder in page.parents and decisions not in page.parents}
    assert decisions in named
    assert pages - named == {folder / "index.md"}

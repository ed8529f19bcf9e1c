"""What the page on packs says is what a pack finds: names, fields and the one module to import."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from tests.docs.pages import ROOT

from toolgate import pack, testing

PAGE = (ROOT / "docs/how-to/write-a-pack.md").read_text(encoding="utf-8")
EXAMPLE = ROOT / "examples/toolgate_weather"
PUBLIC = {"toolgate.pack", "toolgate.testing"}
OTHERS = {
    "MetaData",
    "World",
    "WeatherSettings",
    "RULES",
    "OFFER",
    "NAME",
    "NNNN_what",
    "True",
    "False",
    "Annotated",
}
"""Placeholders, and what Python itself brings."""


def imported(file: Path) -> Iterator[str]:
    """The modules of toolgate that a file imports."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names if one.name.startswith("toolgate."))
        elif isinstance(node, ast.ImportFrom) and node.module:
            if node.module == "toolgate":
                yield from (f"toolgate.{one.name}" for one in node.names)
            elif node.module.startswith("toolgate."):
                yield node.module


def test_the_example_imports_public_modules_alone() -> None:
    found = {one for file in EXAMPLE.rglob("*.py") for one in imported(file)}
    assert found == PUBLIC


@pytest.mark.parametrize("given", [pack.Offer, pack.Site], ids=["Offer", "Site"])
def test_every_field_has_a_row_in_a_table(given: type) -> None:
    firsts = [line.split("|")[1] for line in PAGE.splitlines() if line.startswith("| `")]
    told = {name for first in firsts for name in re.findall(r"`(\w+)`", first)}
    assert [one.name for one in fields(given) if one.name not in told] == []


def code_on_the_page() -> str:
    blocks = re.findall(r"```(?:text|python)\n(.*?)```", PAGE, re.DOTALL)
    prose = re.sub(r"```.*?```", "", PAGE, flags=re.DOTALL)
    code = "\n".join([*blocks, *re.findall(r"`([^`]+)`", prose)])
    return re.sub(r"\btg\.", "", code)


def test_every_class_that_the_page_names_is_public() -> None:
    without_strings = re.sub(r'"[^"]*"', "", code_on_the_page())
    names = set(re.findall(r"(?<![\w.{/])[A-Z]\w+", without_strings)) - OTHERS
    assert "Offer" in names
    assert sorted(name for name in names if name not in pack.__all__) == []


def test_every_member_that_the_page_names_is_there() -> None:
    members = set(re.findall(r"\b([A-Z][a-z]\w+)\.(\w+)", code_on_the_page()))
    assert members
    wrong = [f"{one}.{name}" for one, name in members if not hasattr(getattr(pack, one), name)]
    assert wrong == []


@pytest.mark.parametrize("module", [pack, testing], ids=["pack", "testing"])
def test_every_public_name_is_there_and_listed_once(module: object) -> None:
    names: list[str] = vars(module)["__all__"]
    assert sorted(set(names)) == sorted(names)
    assert [name for name in names if not hasattr(module, name)] == []


def test_every_error_of_a_call_is_public() -> None:
    def below(error: type[Exception]) -> Iterator[type[Exception]]:
        for one in error.__subclasses__():
            if one.__module__ == error.__module__:
                yield one
                yield from below(one)

    of_the_gate = {
        "Internal",
        "OutcomeUnknown",
        "StoppedWrite",
        "ToolDisabled",
        "UnknownTool",
        "InvalidParams",
        "MethodNotAllowed",
        "UnsupportedMediaType",
        "RouteFailed",
    }  # raised by the gate and transports alone
    missing = {one.__name__ for one in below(pack.GateError)}.difference(pack.__all__)
    assert missing == of_the_gate

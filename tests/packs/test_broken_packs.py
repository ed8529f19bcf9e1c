"""A pack of another package that cannot be loaded: its author is told where, and can go on."""

import sys
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import cli

from toolgate import packs

__all__ = ["cli"]

DECLARES = """import toolgate.pack as tg
family = tg.Family("zoo", tg.Pack("zoo", tg.SENTENCE, "Animals."))
@family.tool("zoo.walk", role=tg.Role.ADMIN, effect=tg.Effect.WRITE, title="Walk")
async def walk(ctx: tg.Context[None], args: tg.NoArguments) -> tg.Output:
    "Walk."
OFFER = tg.Offer(pack=family.pack, tools=tuple(family.tools))
"""
OPENS = """import contextlib
import toolgate.pack as tg
@contextlib.asynccontextmanager
async def opened(site, settings):
    yield {}["port"]
OFFER = tg.Offer(pack=tg.Pack("zoo", tg.SENTENCE, "Animals."), open=opened, commands="%s")
"""
BROKEN = {
    "syntax": ("def (:\n", ":1: SyntaxError"),
    "import": ("import os\nimport asyncioo\n", ":2: ModuleNotFoundError: No module named"),
    "declaration": (DECLARES, ":3: BadDeclaration: zoo.walk writes: say what"),
    "no offer": ("OFFERS = 1\n", "AttributeError: module 'zoo_"),
}


Install = Callable[[str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Makes a module the pack `zoo`."""
    modules: list[str] = []

    def make(module: str, source: str) -> None:
        modules.append(module)
        (tmp_path / f"{module}.py").write_text(source)
        monkeypatch.syspath_prepend(str(tmp_path))
        entry = EntryPoint(name="zoo", value=f"{module}:OFFER", group=packs.GROUP)
        monkeypatch.setattr(
            packs, "entry_points", lambda *, group, name="zoo": [entry] if name == "zoo" else []
        )
        monkeypatch.setenv("TOOLGATE_PACKS__ENABLED", "appdata,zoo")

    yield make
    for module in modules:
        sys.modules.pop(module, None)


@pytest.fixture(params=BROKEN)
def told(request: pytest.FixtureRequest, install: Install) -> tuple[str, str]:
    """The module of a pack that is broken, and what is said of it."""
    source, told = BROKEN[request.param]
    module = f"zoo_{request.param.replace(' ', '_')}"
    install(module, source)
    return module, told


def test_the_message_names_pack_file_and_line(told: tuple[str, str]) -> None:
    module, words = told
    with pytest.raises(packs.BrokenPack) as refused:
        packs.offers(["zoo"])
    message = str(refused.value)
    assert message.startswith(f"Pack 'zoo' ({module}:OFFER) cannot be loaded: ")
    assert words in message
    assert ".." not in message.replace("...", "")
    assert message.endswith("Fix it, or remove it from packs.enabled.")


@pytest.mark.parametrize(
    ("command", "code"),
    [(["--help"], 0), (["doctor"], 1), (["tools"], 2)],
    ids=["help", "doctor", "tools"],
)
def test_commands_say_it_and_help_and_doctor_survive(
    cli: Any, told: tuple[str, str], command: list[str], code: int
) -> None:
    ended = cli(*command)
    assert ended.code == code
    assert "Something went wrong on our side" not in ended.err + ended.out
    if command != ["--help"]:
        assert "cannot be loaded" in ended.err + ended.out


def test_a_pack_that_cannot_be_opened_is_named_with_file_and_line(
    cli: Any, install: Install, tmp_path: Path
) -> None:
    install("zoo_open", OPENS % "zoo_open:group")
    data = ["--data", str(tmp_path / "data")]
    assert cli("db", "upgrade", *data).code == 0
    ended = cli("call", "list_collections", *data)
    assert ended.code == 2
    place = f"{tmp_path / 'zoo_open.py'}:5: KeyError: 'port'"
    assert f"Pack 'zoo' (zoo_open:OFFER) cannot be opened: {place}" in ended.out


@pytest.mark.parametrize("word", ["yield", "return"])
def test_what_opens_a_pack_and_is_no_context_manager_is_told_the_decorator(
    cli: Any, install: Install, tmp_path: Path, word: str
) -> None:
    source = OPENS.replace("@contextlib.asynccontextmanager\n", "")
    source = source.replace('yield {}["port"]', f"{word} None").replace(', commands="%s"', "")
    install(f"zoo_{word}", source)
    data = ["--data", str(tmp_path / "data")]
    assert cli("db", "upgrade", *data).code == 0
    ended = cli("call", "list_collections", *data)
    assert ended.code == 2
    told = "Pack 'zoo', field open: make it an async generator function under @contextlib"
    assert told in ended.err + ended.out


def test_what_opens_a_pack_and_returns_is_told_to_yield(
    cli: Any, install: Install, tmp_path: Path
) -> None:
    source = OPENS.replace('yield {}["port"]', "return None").replace(', commands="%s"', "")
    install("zoo_returns", source)
    data = ["--data", str(tmp_path / "data")]
    assert cli("db", "upgrade", *data).code == 0
    ended = cli("call", "list_collections", *data)
    assert ended.code == 2
    told = "Pack 'zoo', field open: yield its world instead of returning it."
    assert told in ended.err + ended.out


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("OFFER = {}", "(zoo_other:OFFER) must be an Offer, not dict."),
        (
            'import toolgate.pack as tg\nOFFER = tg.Offer(pack=tg.Pack("ape", tg.SENTENCE, "A."))',
            "(zoo_other:OFFER) is the Offer of pack 'ape'. Use one name for both.",
        ),
    ],
    ids=["dict", "name"],
)
def test_an_entry_point_that_is_something_else_is_told_what(
    install: Install, source: str, told: str
) -> None:
    install("zoo_other", source)
    with pytest.raises(packs.UnknownPack) as refused:
        packs.offers(["zoo"])
    assert str(refused.value) == f"The entry point of pack 'zoo' {told}"


def test_a_pack_without_its_commands_is_named_and_help_lists_the_others(
    cli: Any, install: Install
) -> None:
    install("zoo_commands", OPENS % "zoo_commands:grup")
    ended = cli("zoo", "feed", "--all")
    assert ended.code == 2
    told = "Pack 'zoo' (zoo_commands:OFFER) cannot bring its commands (zoo_commands:grup): "
    assert told + "AttributeError: module 'zoo_commands' has no" in " ".join(ended.err.split())
    helped = cli("--help")
    assert (helped.code, "zoo" in helped.out, "appdata" in helped.out) == (0, True, True)

"""A pack of another package that cannot be loaded: its author is told where, and can go on."""

import sys
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
BROKEN = {
    "syntax": ("def (:\n", ":1: SyntaxError"),
    "import": ("import os\nimport asyncioo\n", ":2: ModuleNotFoundError: No module named"),
    "declaration": (DECLARES, ":3: BadDeclaration: zoo.walk writes: say what"),
    "no offer": ("OFFERS = 1\n", "AttributeError: module 'zoo_"),
}


@pytest.fixture(params=BROKEN)
def told(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str]:
    """The module of a pack that is broken, and what is said of it."""
    source, told = BROKEN[request.param]
    module = f"zoo_{request.param.replace(' ', '_')}"
    (tmp_path / f"{module}.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    entry = EntryPoint(name="zoo", value=f"{module}:OFFER", group=packs.GROUP)
    monkeypatch.setattr(
        packs, "entry_points", lambda *, group, name="zoo": [entry] if name == "zoo" else []
    )
    yield module, told
    sys.modules.pop(module, None)


def test_the_message_names_pack_file_and_line(told: tuple[str, str]) -> None:
    module, words = told
    with pytest.raises(packs.BrokenPack) as refused:
        packs.offers(["zoo"])
    message = str(refused.value)
    assert message.startswith(f"Pack 'zoo' ({module}:OFFER) cannot be loaded: ")
    assert words in message
    assert message.endswith("take it out of the setting packs.enabled.")


@pytest.mark.parametrize(
    ("command", "code"),
    [(["--help"], 0), (["doctor"], 1), (["tools"], 2)],
    ids=["help", "doctor", "tools"],
)
def test_commands_say_it_and_help_and_doctor_survive(
    cli: Any, monkeypatch: pytest.MonkeyPatch, told: tuple[str, str], command: list[str], code: int
) -> None:
    monkeypatch.setenv("TOOLGATE_PACKS__ENABLED", "appdata,zoo")
    ended = cli(*command)
    assert ended.code == code
    assert "Something went wrong on our side" not in ended.err + ended.out
    if command != ["--help"]:
        assert "cannot be loaded" in ended.err + ended.out

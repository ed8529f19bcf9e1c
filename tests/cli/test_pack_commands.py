"""Commands that packs bring along."""

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("enabled", "pack", "told"),
    [
        ("appdata", "content", "Pack 'content' is not enabled, so there are no commands of it."),
        ("", "backend", "Pack 'backend' has no commands."),
        ("", "xyz", "No such command 'xyz'. See `toolgate --help`."),
    ],
    ids=["not among those enabled", "without commands", "no pack"],
)
def test_a_pack_without_this_command_says_why(
    cli: Any, monkeypatch: pytest.MonkeyPatch, enabled: str, pack: str, told: str
) -> None:
    monkeypatch.setenv("TOOLGATE_PACKS__ENABLED", enabled)
    refused = cli(pack, "import")
    assert (refused.code, refused.out) == (2, "")
    assert told in " ".join(refused.err.split())


def test_a_pack_that_is_enabled_has_its_commands(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLGATE_PACKS__ENABLED", '["content"]')
    assert cli("content", "--help").code == 0
    assert "appdata" not in cli("--help").out

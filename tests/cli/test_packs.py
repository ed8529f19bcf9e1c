"""`toolgate packs`: what there is, enabled or not, and how to enable it."""

from typing import Any

import pytest


@pytest.mark.usefixtures("data")
def test_a_pack_that_is_off_is_described_too(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLGATE_PACKS__ENABLED", "appdata")
    rows = {row["name"]: row for row in cli("packs", "--json").json["packs"]}
    assert [name for name, row in rows.items() if row["enabled"]] == ["appdata"]
    assert rows["backend"]["tools"] > 0
    assert rows["backend"]["summary"]
    told = cli("packs").out
    assert "The setting packs.enabled names those that are enabled" in told

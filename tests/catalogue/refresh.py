"""Write the public description of tools to snapshots/ of their packs, after a change that is meant.

python -m tests.catalogue.refresh

A pack that still lacks some of its tools has none: nothing is promised of it yet.
"""

import json
from pathlib import Path
from typing import Any

from toolgate import packs
from toolgate.gate.catalogue import AnyTool
from toolgate.transports.http import tool_description

PACKS = Path(__file__).parents[1] / "packs"
PROMISED = [tool for offer in packs.offers(packs.SHIPPED) if offer.complete for tool in offer.tools]


def place_of(tool: AnyTool) -> Path:
    """Where the snapshot of a tool is."""
    return PACKS / tool.pack.name / "snapshots" / f"{tool.name}.json"


def recorded() -> set[Path]:
    """Every snapshot there is."""
    return set(PACKS.glob("*/snapshots/*.json"))


def snapshot(tool: AnyTool) -> str:
    """The text of a tool's snapshot."""
    shown: dict[str, Any] = tool_description(tool)
    return json.dumps(shown, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    wanted = {place_of(tool): snapshot(tool) for tool in PROMISED}
    for old in recorded() - wanted.keys():
        old.unlink()
    for place, text in wanted.items():
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8")
    print(f"{len(wanted)} snapshots written.")


if __name__ == "__main__":
    main()

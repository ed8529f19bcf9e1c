"""Write the public description of every tool to snapshots/, after a change that is meant.

python -m tests.catalogue.refresh
"""

import json
from pathlib import Path
from typing import Any

from toolgate import packs
from toolgate.gate.catalogue import AnyTool, Catalogue
from toolgate.transports.http import tool_description

SNAPSHOTS = Path(__file__).parent / "snapshots"


def snapshot(tool: AnyTool) -> str:
    """The text of a tool's snapshot."""
    shown: dict[str, Any] = tool_description(tool)
    return json.dumps(shown, indent=2, ensure_ascii=False) + "\n"


def main() -> None:
    SNAPSHOTS.mkdir(exist_ok=True)
    wanted = {f"{tool.name}.json": snapshot(tool) for tool in Catalogue(packs.offers())}
    for old in SNAPSHOTS.glob("*.json"):
        if old.name not in wanted:
            old.unlink()
    for name, text in wanted.items():
        (SNAPSHOTS / name).write_text(text, encoding="utf-8")
    print(f"{len(wanted)} snapshots written.")


if __name__ == "__main__":
    main()

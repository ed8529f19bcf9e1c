"""A gate in a process of its own that counts to forty in the background, to be killed."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

from toolgate.app import opened
from toolgate.gate.dialects import SENTENCE
from toolgate.gate.offer import Offer
from toolgate.gate.tool import Pack
from toolgate.settings import read_settings
from toolgate.workflows.declarations import Run, Workflow

STEPS = 40


async def main(url: str, folder: Path, lines: Path) -> None:
    async def count(run: Run[Any]) -> dict[str, Any]:
        for number in range(run.state.get("next", 0), STEPS):
            with lines.open("a") as file:
                file.write(f"{os.getpid()} {number}\n")
            await asyncio.sleep(0.02)
            await run.checkpoint({"next": number + 1}, done=number + 1, total=STEPS)
        return {"counted": STEPS}

    workflow = Workflow(name="count", summary="Counts.", run=count)
    offer = Offer[Any, Any](pack=Pack("steps", SENTENCE, "Steps."), workflows=(workflow,))
    flags = {
        "data": folder,
        "database.url": url,
        "packs.enabled": ["content"],
        "workflows.lease_seconds": 1,
    }
    async with opened(read_settings(flags=flags, environment={}), [offer]) as app:
        workflows = app.site_of("steps").workflows
        record = await workflows.wait(await workflows.start_now("count", key="the one"))
    assert record.result == {"counted": STEPS}, record


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])))

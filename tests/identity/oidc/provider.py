"""npm `oidc-provider` as a process of its own, and a person in a browser who signs in there."""

import json
import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.conformance.node import find, install
from tests.identity.oauth.flow import query_of
from tests.identity.pages import browsing, walk

SCRIPT = "op.mjs"
BACK = "https://gate.example/sign-in/back"


@contextmanager
def running() -> Generator[str]:
    """Run the provider for as long as the block lasts; yields its issuer."""
    home = install(Path(__file__).parent, SCRIPT)
    with subprocess.Popen(
        [find().executable, SCRIPT],
        cwd=home,
        env={**os.environ, "NODE_ENV": "test"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            line = next((one for one in process.stdout if one.startswith("{")), None)
            assert line, "the provider did not start"
            yield json.loads(line)["url"]
        finally:
            process.kill()


async def sign_in(url: str, who: str | None) -> dict[str, str]:
    """Go through the pages as `who`, or refuse; what the browser brings back to us."""
    typed = {} if who is None else {"login": who, "password": "any"}
    async with browsing() as browser:
        return query_of(await walk(browser, url, BACK, typed))

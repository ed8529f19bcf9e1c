"""npm `oidc-provider` as a process of its own, and a person in a browser who signs in there."""

import html
import json
import os
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qsl, urljoin, urlsplit

import httpx2
from tests.conformance.node import find, install

SCRIPT = "op.mjs"
BACK = "https://gate.example/sign-in/back"
MOST_PAGES = 15


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
    async with httpx2.AsyncClient(timeout=20, trust_env=False) as browser:
        answer = await browser.get(url)
        for _ in range(MOST_PAGES):
            if answer.is_redirect:
                address = urljoin(str(answer.url), answer.headers["location"])
                if address.startswith(BACK):
                    return dict(parse_qsl(urlsplit(address).query))
                answer = await browser.get(address)
                continue
            assert answer.status_code == 200, answer.text
            answer = await _on(browser, answer, who)
    raise AssertionError("the pages have no end")


async def _on(browser: httpx2.AsyncClient, page: httpx2.Response, who: str | None):
    if who is None:
        cancel = re.search(r'href="([^"]+/abort)"', page.text)
        assert cancel, page.text
        return await browser.get(urljoin(str(page.url), html.unescape(cancel[1])))
    form = re.search(r'<form[^>]*action="([^"]+)"[^>]*>(.*?)</form>', page.text, re.DOTALL)
    assert form, page.text
    fields = dict(re.findall(r'name="([^"]+)"[^>]*value="([^"]*)"', form[2]))
    if 'name="login"' in form[2]:
        fields |= {"login": who, "password": "any"}
    return await browser.post(urljoin(str(page.url), html.unescape(form[1])), data=fields)

"""A person at a browser: goes where pages lead, and fills in what they ask for."""

import html
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import urljoin

import httpx2
from tests.patience import PATIENT

MAX_PAGES = 20
FORM = re.compile(r'<form[^>]*action="([^"]+)"[^>]*>(.*?)</form>', re.DOTALL)
HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)"')
CANCEL = re.compile(r'href="([^"]+/abort)"')


@asynccontextmanager
async def browsing(request_id: str = "browsing") -> AsyncGenerator[httpx2.AsyncClient, None]:
    """A browser with cookies of its own; refusals are audited under `request_id`."""
    headers = {"X-Request-Id": request_id}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENT, trust_env=False) as browser:
        yield browser


async def walk(
    browser: httpx2.AsyncClient, url: str, until: str, typed: Mapping[str, str]
) -> httpx2.Response:
    """Go on until sent to an address that begins with `until`, or to a page without a form."""
    answer = await browser.get(url)
    for _ in range(MAX_PAGES):
        if answer.is_redirect:
            where = urljoin(str(answer.url), answer.headers["location"])
            if where.startswith(until):
                return answer
            answer = await browser.get(where)
        elif form := FORM.search(answer.text):
            answer = await _send(browser, answer, form, typed)
        else:
            return answer
    raise AssertionError("the pages have no end")


async def _send(
    browser: httpx2.AsyncClient,
    page: httpx2.Response,
    form: re.Match[str],
    typed: Mapping[str, str],
) -> httpx2.Response:
    assert page.status_code == 200, page.text
    cancel = CANCEL.search(page.text)
    if cancel and not typed:
        return await browser.get(urljoin(str(page.url), html.unescape(cancel[1])))
    fields = {name: html.unescape(value) for name, value in HIDDEN.findall(form[2])}
    asked = {name: value for name, value in typed.items() if f'name="{name}"' in form[2]}
    where = urljoin(str(page.url), html.unescape(form[1]))
    return await browser.post(where, data=fields | asked)

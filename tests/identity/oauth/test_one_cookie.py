"""Signing in through a proxy that forwards one cookie only, as Firebase Hosting does."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.identity.oauth.flow import PREFIX, Flow, hidden, registered
from tests.transports.conftest import ADMIN_KEY, Web, opened_web

from toolgate.settings import BadSettings, read_settings

pytestmark = pytest.mark.anyio

PUBLIC, SERVICE = "https://api.example.com", "toolgate-abc123-ew.a.run.app"
SETTINGS: dict[str, Any] = {
    "server__public_url": PUBLIC,
    "server__allowed_hosts": ("api.example.com", SERVICE),
}
SESSION = {"oauth__cookie": "__session"}


class Hosting(httpx2.AsyncBaseTransport):
    """Sends requests on to the service under its own name, with the cookie `__session` alone."""

    def __init__(self, web: Web) -> None:
        self._inner = httpx2.ASGITransport(web.app)
        self.dropped: set[str] = set()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        sent = SimpleCookie(request.headers.pop("cookie", ""))
        self.dropped |= set(sent) - {"__session"}
        if "__session" in sent:
            request.headers["cookie"] = f"__session={sent['__session'].value}"
        request.headers["x-forwarded-host"] = request.headers["host"]
        request.headers["host"] = SERVICE
        return await self._inner.handle_async_request(request)


@asynccontextmanager
async def hosted(
    folder: Path, **settings: Any
) -> AsyncGenerator[tuple[Hosting, httpx2.AsyncClient]]:
    async with opened_web(folder, **SETTINGS, **settings) as web:
        proxy = Hosting(web)
        async with httpx2.AsyncClient(transport=proxy, base_url=PUBLIC) as http:
            yield proxy, http


async def test_people_sign_in_with_the_one_cookie(tmp_path: Path) -> None:
    async with hosted(tmp_path, **SESSION) as (proxy, http):
        flow = await registered(http)
        sent = await flow.authorize()
        cookie = SimpleCookie(sent.headers["set-cookie"])["__session"]
        assert (cookie["path"], cookie["samesite"]) == ("/", "Lax")
        assert cookie["secure"]
        assert cookie["httponly"]
        tokens = await flow.tokens(ADMIN_KEY)
        assert (await flow.tools(tokens["access_token"])).status_code == 200
        assert proxy.dropped == set()


async def test_without_the_setting_nobody_can(tmp_path: Path) -> None:
    async with hosted(tmp_path) as (proxy, http):
        sent = await (await registered(http)).authorize()
        page = await http.get(sent.headers["location"])
        assert page.status_code == 403
        assert len(proxy.dropped) == 1


async def test_of_two_sign_ins_in_one_browser_the_last_is_finished(tmp_path: Path) -> None:
    async with hosted(tmp_path, **SESSION) as (_, http):
        first, last = await registered(http), await registered(http)
        pages = [await signing_in(flow) for flow in (first, last)]
        answers = [await typed(http, page) for page in pages]
        assert [answer.status_code for answer in answers] == [403, 303]
        assert "This sign-in is over" in answers[0].text


async def signing_in(flow: Flow) -> httpx2.Response:
    return await flow.http.get((await flow.authorize()).headers["location"])


async def typed(http: httpx2.AsyncClient, page: httpx2.Response) -> httpx2.Response:
    return await http.post(f"{PREFIX}/sign-in", data={**hidden(page), "key": ADMIN_KEY})


async def test_another_browser_cannot_go_on(tmp_path: Path) -> None:
    async with hosted(tmp_path, **SESSION) as (proxy, http):
        page = await signing_in(await registered(http))
        cookies = {"__session": "0" * 64}
        async with httpx2.AsyncClient(transport=proxy, base_url=PUBLIC, cookies=cookies) as other:
            assert (await typed(other, page)).status_code == 403


@pytest.mark.parametrize("name", ["", "a b", "x=y", "x;y", "x" * 65, "session\n"])
def test_a_name_that_is_no_cookies_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadSettings, match=r"oauth\.cookie"):
        read_settings(flags={"data": tmp_path, "oauth.cookie": name}, environment={})

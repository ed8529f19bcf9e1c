"""The page behind the links to unsubscribe: a look changes nothing, read-only is kept."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.transports.conftest import Web, opened_web

pytestmark = pytest.mark.anyio

EMAIL = "a@example.com"
ONE_CLICK = {"List-Unsubscribe": "One-Click"}


def world(web: Web) -> Any:
    return web.kit.app.worlds["backend"].world


def link_of(web: Web) -> str:
    link: str = world(web).mail.links.link(EMAIL, "newsletter")
    parts = urlsplit(link)
    return f"{parts.path}?{parts.query}"


async def is_allowed(web: Web) -> bool:
    return await world(web).consent.allows(EMAIL, "newsletter")


async def test_a_look_changes_nothing_and_a_click_does(tmp_path: Path) -> None:
    async with opened_web(tmp_path) as web, web.client(None) as client:
        link = link_of(web)
        looked = await client.get(link)
        assert (looked.status_code, await is_allowed(web)) == (200, True)
        done = await client.post(link, data=ONE_CLICK)
        assert (done.status_code, await is_allowed(web)) == (200, False)
        assert "You are unsubscribed" in done.text


async def test_a_read_only_gate_refuses_in_words_for_people(tmp_path: Path) -> None:
    async with opened_web(tmp_path, policy__read_only=True) as web, web.client(None) as client:
        link = link_of(web)
        assert (await client.get(link)).status_code == 200
        refused = await client.post(link, data=ONE_CLICK)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "3600")
        assert refused.headers["content-type"].startswith("text/html")
        assert "Nothing was changed" in refused.text
        assert "switched off by an operator" in refused.text
        assert await is_allowed(web)
        (row,) = await web.audit_rows(refused.headers["x-request-id"])
    assert row["rule"] == "read-only-gate"


async def test_agents_without_delete_contact_leave_people_their_wish(tmp_path: Path) -> None:
    off = "delete_contact"
    async with opened_web(tmp_path, policy__disabled=off) as web, web.client(None) as client:
        assert (await client.post(link_of(web), data=ONE_CLICK)).status_code == 200
        assert not await is_allowed(web)

"""The portal page of the embedded ledger: a signed link, and a form that cancels."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.packs.backend.payments.records import keep, moment, stored, subscription
from tests.transports.conftest import Web, opened_web

from toolgate.packs.backend.payments import portal_links

pytestmark = pytest.mark.anyio


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Web]:
    async with opened_web(tmp_path, packs__enabled=["backend"]) as opened:
        yield opened


async def link(web: Web, uid: str = "_test-premium-active", **arguments: str) -> str:
    url = (await web.kit.call("get_payment_portal", uid=uid, **arguments)).body["url"]
    base = web.kit.app.site_of("backend").base_url
    assert url.startswith(f"{base}/backend-manager/payments/portal/")
    return url.removeprefix(base)


async def test_the_page_shows_the_plan_and_says_what_it_is(web: Web) -> None:
    path = await link(web)
    async with web.client(None) as stranger:
        page = await stranger.get(path)
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    for part in ("Premium", "active", "4.99 USD", "built into toolgate", "no money is moved"):
        assert part in page.text
    assert page.headers["referrer-policy"] == "same-origin"
    assert page.headers["cache-control"] == "no-store"


async def test_every_link_is_new(web: Web) -> None:
    assert len({await link(web) for _ in "abc"}) == 3


async def test_the_form_cancels_once(web: Web) -> None:
    path = await link(web)
    async with web.client(None) as stranger:
        sent = await stranger.post(path)
        assert (sent.status_code, sent.headers["location"]) == (303, path)
        assert (await stored(web.kit, "_test-premium-active"))["cancellation"]["pending"] is True
        page = await stranger.get(path)
        assert "ends with its period" in page.text
        assert "<form" not in page.text
        again = await stranger.post(path)
        assert again.status_code == 400
        assert "Subscription is already pending cancellation" in again.text
    rows = [row for row in await web.kit.audit_rows() if row["rule"] == "portal-link"]
    assert [row["subject_id"] for row in rows] == ["portal:_test-premium-active"]


async def test_a_link_that_was_changed_or_is_old_opens_nothing(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await link(web)
    head, _, token = path.rpartition("/")
    async with web.client(None) as stranger:
        for bad in (token[:-2] + "AA", "x" + token, "x", "x" * 3001, token.swapcase()):
            for method in ("GET", "POST"):
                page = await stranger.request(method, f"{head}/{bad}")
                assert page.status_code == 404
                assert "has expired, or is not complete" in page.text
        later = time.time() + 3601
        monkeypatch.setattr(portal_links.time, "time", lambda: later)
        assert (await stranger.get(path)).status_code == 404
        assert (await stranger.post(path)).status_code == 404
    assert (await stored(web.kit, "_test-premium-active"))["cancellation"]["pending"] is False


async def test_what_a_record_says_is_text(web: Web) -> None:
    name = {"id": "premium", "name": "<script>alert(1)</script>"}
    await keep(web.kit, "anna", subscription(product=name, expires=moment(9)))
    back = web.kit.app.site_of("backend").base_url + '/?a="><script>1'
    path = await link(web, "anna", returnUrl=back)
    async with web.client(None) as stranger:
        page = await stranger.get(path)
    assert "<script>" not in page.text
    assert "&lt;script&gt;alert(1)" in page.text


async def test_a_plan_that_costs_nothing_has_no_page(web: Web) -> None:
    refused = await web.kit.call("get_payment_portal", uid="_test-basic")
    assert (refused.status, refused.body["error"]) == (400, "No paid subscription found")


async def test_a_trial_is_told_to_end_at_once(web: Web) -> None:
    trial = {"claimed": True, "expires": moment(5)}
    await keep(web.kit, "anna", subscription(trial=trial, expires=moment(5)))
    path = await link(web, "anna")
    async with web.client(None) as stranger:
        assert "End the trial now" in (await stranger.get(path)).text
        assert (await stranger.post(path)).status_code == 303
        assert "cancelled" in (await stranger.get(path)).text
    assert (await stored(web.kit, "anna"))["status"] == "cancelled"

"""Attacks on the pages and on the browser that shows them: refused, and audited."""

from pathlib import Path

import httpx2
import pytest
from sqlalchemy import update
from tests.identity.oauth.conftest import BASE
from tests.identity.oauth.flow import PREFIX, Flow, hidden, query_of, registered
from tests.identity.oauth.refusals import audited, change, named
from tests.transports.conftest import ADMIN_KEY, Web, opened_web

from toolgate.db.oauth_tables import sign_ins
from toolgate.gate.audit_records import timestamp

pytestmark = pytest.mark.anyio


def guarded(answer: httpx2.Response) -> None:
    assert answer.headers["x-frame-options"] == "DENY"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none';")
    assert "frame-ancestors 'none'" in policy
    assert "script-src" not in policy
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert "<script" not in answer.text
    assert " style=" not in answer.text


async def test_no_page_can_be_framed(flow: Flow) -> None:
    sent = await flow.authorize()
    guarded(await flow.http.get(sent.headers["location"]))
    guarded(await flow.sign_in("wrong"))
    guarded(await flow.consent_page(ADMIN_KEY))
    guarded(await flow.authorize(client_id="nobody"))


@pytest.mark.parametrize("token", ["", "0" * 64, None])
async def test_a_forged_form_decides_nothing(web: Web, flow: Flow, token: str | None) -> None:
    page = await flow.consent_page(ADMIN_KEY)
    form = {**hidden(page), "decision": "allow", "form_token": token or ""}
    if token is None:
        del form["form_token"]
    request_id = f"forged-{token}"
    answer = await flow.http.post(f"{PREFIX}/consent", data=form, headers=named(request_id))
    assert answer.status_code == 403
    assert await audited(web, request_id) == "oauth-forged-form"


async def test_a_forged_sign_in_signs_nobody_in(web: Web, flow: Flow) -> None:
    sent = await flow.authorize()
    page = await flow.http.get(sent.headers["location"])
    form = {**hidden(page), "form_token": "0" * 64, "key": ADMIN_KEY}
    answer = await flow.http.post(f"{PREFIX}/sign-in", data=form, headers=named("forged-sign-in"))
    assert answer.status_code == 403
    assert await audited(web, "forged-sign-in") == "oauth-forged-form"


async def test_a_form_from_a_foreign_page_is_refused_before_anything_else(flow: Flow) -> None:
    page = await flow.consent_page(ADMIN_KEY)
    form = {**hidden(page), "decision": "allow"}
    for origin in ("https://evil.example", "null"):
        headers = {"Origin": origin}
        answer = await flow.http.post(f"{PREFIX}/consent", data=form, headers=headers)
        assert answer.status_code == 403


async def test_another_browser_cannot_go_on(web: Web, flow: Flow) -> None:
    page = await flow.consent_page(ADMIN_KEY)
    form = {**hidden(page), "decision": "allow"}
    async with web.client(None) as other:
        headers = named("other-browser")
        answer = await other.post(f"{PREFIX}/consent", data=form, headers=headers)
        shown = await other.get(f"{PREFIX}/consent", params={"request": form["request"]})
    assert (answer.status_code, shown.status_code) == (403, 403)
    assert await audited(web, "other-browser") == "oauth-other-browser"


async def test_consent_is_not_reached_without_signing_in(web: Web, flow: Flow) -> None:
    sent = await flow.authorize()
    request = query_of(sent)["request"]
    answer = await flow.http.get(
        f"{PREFIX}/consent", params={"request": request}, headers=named("no-sign-in")
    )
    assert answer.status_code == 403
    assert await audited(web, "no-sign-in") == "oauth-not-signed-in"


async def test_a_sign_in_ends_after_ten_minutes(web: Web, flow: Flow) -> None:
    sent = await flow.authorize()
    await change(web, update(sign_ins).values(expires_at=timestamp(seconds=-1)))
    assert (await flow.http.get(sent.headers["location"])).status_code == 403


async def test_the_cookie_is_out_of_reach_of_scripts(web: Web, flow: Flow, tmp_path: Path) -> None:
    plain = (await flow.authorize()).headers["set-cookie"]
    assert plain.startswith("toolgate-")
    assert "HttpOnly" in plain
    assert "SameSite=Lax" in plain
    settings = {"server__public_url": "https://tools.example.com"}
    async with opened_web(tmp_path, **settings) as secure, secure.client(None) as http:
        cookie = (await (await registered(http)).authorize()).headers["set-cookie"]
    assert cookie.startswith("__Host-toolgate-")
    assert "; Path=/;" in cookie
    assert "; Secure" in cookie
    assert "Domain" not in cookie


async def test_two_sign_ins_in_one_browser_do_not_disturb_each_other(flow: Flow) -> None:
    other = await registered(flow.http)
    first, second = await flow.consent_page(ADMIN_KEY), await other.consent_page(ADMIN_KEY)
    assert "code" in query_of(await flow.decide(first))
    assert "code" in query_of(await other.decide(second))


async def test_an_answer_names_its_issuer(flow: Flow) -> None:
    """So that a client of two servers notices when their answers are mixed up (RFC 9207)."""
    page = await flow.consent_page(ADMIN_KEY)
    assert query_of(await flow.decide(page))["iss"] == BASE
    assert query_of(await flow.authorize(response_type="token"))["iss"] == BASE


async def test_every_wrong_key_gets_the_same_answer(web: Web, flow: Flow) -> None:
    """One path for keys that exist and keys that do not; hashes are compared in either case."""
    user = web.keys["user"]
    tampered = user[:-1] + ("0" if user[-1] != "0" else "1")
    made_up = f"tg_{'0' * 16}_{'0' * 64}"
    answers = [await flow.sign_in(key) for key in (tampered, made_up, "x", "Ω")]
    assert {answer.status_code for answer in answers} == {403}
    stripped = {_without_tokens(answer.text) for answer in answers}
    assert len(stripped) == 1


def _without_tokens(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if 'type="hidden"' not in line)

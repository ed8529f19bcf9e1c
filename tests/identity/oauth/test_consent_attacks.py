"""Who may decide: only the browser in which the person signed in, and only while the key holds."""

import pytest
from sqlalchemy import func, select
from tests.identity.oauth.flow import PREFIX, Flow, hidden, query_of
from tests.identity.oauth.refusals import audited, named
from tests.transports.conftest import ADMIN_KEY, Web

from toolgate.db.oauth_tables import tokens as token_table
from toolgate.gate.principal import Role
from toolgate.identity.oauth import opaque
from toolgate.identity.oauth.grant_list import grants_in_force

pytestmark = pytest.mark.anyio


async def many_tokens(web: Web) -> int:
    counted = select(func.count()).select_from(token_table)
    return await web.kit.app.gate.database.read(lambda c: c.execute(counted).scalar_one())


async def grant_ids(web: Web) -> set[str]:
    return {one["id"] for one in await grants_in_force(web.kit.app.gate.database)}


# Browsers send a cookie to every port of a host: a client on this machine may hold it


async def test_the_cookie_alone_shows_no_consent_page_and_decides_nothing(
    web: Web, flow: Flow
) -> None:
    answered = await flow.sign_in(ADMIN_KEY)
    number = query_of(answered)["request"]
    cookies = dict(flow.http.cookies)
    async with web.client(None) as thief:
        thief.cookies.update(cookies)
        shown = await thief.get(
            f"{PREFIX}/consent", params={"request": number}, headers=named("thief")
        )
        assert shown.status_code == 403
        assert "form_token" not in shown.text
        assert await audited(web, "thief") == "oauth-forged-form"
        derived = opaque.derive(cookies[f"toolgate-{number}"], f"form:{number}")
        page = await thief.get(f"{PREFIX}/sign-in", params={"request": number})
        for token in (derived, hidden(page)["form_token"], ""):
            form = {"request": number, "form_token": token, "decision": "allow"}
            answer = await thief.post(f"{PREFIX}/consent", data=form)
            assert answer.status_code == 403
            assert "location" not in answer.headers
    page = await flow.http.get(answered.headers["location"])
    assert "code" in query_of(await flow.decide(page)), "and the person still can"


async def test_who_signs_in_anew_gets_a_page_of_their_own(flow: Flow) -> None:
    sent = await flow.authorize()
    page = await flow.http.get(sent.headers["location"])
    form = {**hidden(page), "key": ADMIN_KEY}
    first, second = [await flow.http.post(f"{PREFIX}/sign-in", data=form) for _ in range(2)]
    assert (await flow.http.get(first.headers["location"])).status_code == 403
    shown = await flow.http.get(second.headers["location"])
    assert "code" in query_of(await flow.decide(shown))
    assert (await flow.http.post(f"{PREFIX}/sign-in", data=form)).status_code == 403, "it is over"


async def test_deny_after_allow_ends_the_grant(web: Web, flow: Flow) -> None:
    before = await grant_ids(web)
    page = await flow.consent_page(ADMIN_KEY)
    code = query_of(await flow.decide(page))["code"]
    tokens = (await flow.exchange(code)).json()
    assert len(await grant_ids(web) - before) == 1
    told = query_of(await flow.decide(page, "deny"))
    assert told["error"] == "access_denied"
    web.kit.app.credentials.forget()
    assert (await flow.tools(tokens["access_token"])).status_code == 401
    assert (await flow.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    assert await grant_ids(web) == before


async def test_allow_sent_twice_is_told_as_it_is(web: Web, flow: Flow) -> None:
    page = await flow.consent_page(ADMIN_KEY)
    code = query_of(await flow.decide(page))["code"]
    form = {**hidden(page), "decision": "allow"}
    again = await flow.http.post(f"{PREFIX}/consent", data=form, headers=named("twice"))
    assert again.status_code == 403
    assert "You have allowed this already." in again.text
    assert "Nothing was allowed" not in again.text
    assert await audited(web, "twice") == "oauth-answered-twice"
    assert (await flow.exchange(code)).status_code == 200


# A grant ends with the key that was signed in with


async def test_a_revoked_keys_grant_gives_no_new_tokens_and_is_not_listed(
    web: Web, flow: Flow
) -> None:
    made = await web.kit.app.keys.create(role=Role.ADMIN)
    before = await grant_ids(web)
    tokens = await flow.tokens(made.key)
    await web.kit.app.keys.revoke(made.id)
    assert await grant_ids(web) == before
    counted = await many_tokens(web)
    for request_id in ("ended-key-1", "ended-key-2"):
        answer = await flow.refresh(tokens["refresh_token"], named(request_id))
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert await many_tokens(web) == counted
    assert await audited(web, "ended-key-1") == "oauth-key-ended"
    assert await audited(web, "ended-key-2") == "oauth-grant-ended"


async def test_a_revoked_keys_code_is_worth_nothing(web: Web, flow: Flow) -> None:
    made = await web.kit.app.keys.create(role=Role.ADMIN)
    code = await flow.code(made.key)
    await web.kit.app.keys.revoke(made.id)
    answer = await flow.exchange(code, named("ended-code"))
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert await audited(web, "ended-code") == "oauth-key-ended"


async def test_a_consent_page_opened_before_the_key_was_revoked_allows_nothing(
    web: Web, flow: Flow
) -> None:
    made = await web.kit.app.keys.create(role=Role.ADMIN)
    answered = await flow.sign_in(made.key)
    page = await flow.http.get(answered.headers["location"])
    await web.kit.app.keys.revoke(made.id)
    refused = await flow.decide(page)
    assert refused.status_code == 403
    assert "The key that was signed in with has ended." in refused.text
    assert (await flow.http.get(answered.headers["location"])).status_code == 403


async def test_the_grants_of_an_admin_key_that_was_changed_do_not_come_back_with_it(
    web: Web, flow: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = await flow.tokens(ADMIN_KEY)
    with monkeypatch.context() as changed:
        changed.setattr(web.kit.app.keys, "_admin_hash", bytes(32))
        answer = await flow.refresh(tokens["refresh_token"])
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert (await flow.refresh(tokens["refresh_token"])).status_code == 400
    web.kit.app.credentials.forget()
    assert (await flow.tools(tokens["access_token"])).status_code == 401

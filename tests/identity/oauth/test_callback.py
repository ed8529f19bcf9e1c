"""Signing in elsewhere: the browser goes to a provider and comes back with proof."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
from tests.identity.oauth.flow import PREFIX, Flow, hidden, query_of, registered
from tests.transports.conftest import Web

from toolgate.identity.providers import Profile, SignInFailed, SignInStart
from toolgate.ports.documents import Create
from toolgate.ports.users import NAMESPACE
from toolgate.testing import Kit, opened_kit
from toolgate.transports.web import web_app

pytestmark = pytest.mark.anyio

AWAY = "https://id.example/sign-in"


class Elsewhere:
    """A provider that believes what the browser brings, if it is its own secret."""

    async def begin(self, state: str, back: str) -> SignInStart:
        return SignInStart(f"{AWAY}?state={state}&back={back}", {"nonce": "n-1"})

    async def finish(
        self, query: Mapping[str, str], remembered: Mapping[str, str], back: str
    ) -> Profile:
        assert back == f"http://127.0.0.1{PREFIX}/callback"
        if remembered != {"nonce": "n-1"} or query.get("proof") != "good":
            raise SignInFailed("The provider's answer is not right.")
        return Profile(query.get("uid", "jane"), email="jane@example.com")


@pytest.fixture
async def web(tmp_path: Path) -> AsyncIterator[Web]:
    settings = {
        "sign_in__provider": "oidc",
        "sign_in__oidc_issuer": "https://id.example",
        "sign_in__oidc_client_id": "toolgate",
    }
    async with opened_kit(tmp_path, **settings) as kit:
        app = kit.app
        opened = web_app(
            app.gate,
            app.credentials,
            app.settings,
            app.readiness(),
            app.outbound,
            provider=Elsewhere(),
        )
        async with opened as served:
            yield Web(kit, served, {})


@pytest.fixture
async def flow(web: Web) -> AsyncIterator[Flow]:
    async with web.client(None) as http:
        yield await registered(http)


async def back(flow: Flow, **brought: str) -> str:
    """Go away and come back; where the browser is sent then."""
    sent = await flow.authorize()
    assert sent.headers["location"].startswith(AWAY)
    state = query_of(sent)["state"]
    answer = await flow.http.get(f"{PREFIX}/callback", params={"state": state, **brought})
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


async def signed_in(flow: Flow, uid: str) -> str:
    """An access token for a person."""
    page = await flow.http.get(await back(flow, proof="good", uid=uid))
    assert "jane@example.com" in page.text
    code = query_of(await flow.decide(page))["code"]
    return (await flow.exchange(code)).json()["access_token"]


async def record(kit: Kit, uid: str) -> dict[str, object] | None:
    return await kit.app.documents.of(NAMESPACE).get("users", uid)


async def test_the_first_sign_in_makes_the_persons_record(web: Web, flow: Flow) -> None:
    assert await record(web.kit, "jane") is None
    await signed_in(flow, "jane")
    made = await record(web.kit, "jane")
    assert made is not None
    assert made["auth"] == {"uid": "jane", "email": "jane@example.com", "temporary": False}
    assert set(made["roles"].values()) == {False}
    assert "privateKey" not in str(made)
    await signed_in(flow, "jane")
    assert await record(web.kit, "jane") == made, "the second one leaves it alone"


async def test_a_signed_in_person_is_a_user(web: Web, flow: Flow) -> None:
    token = await signed_in(flow, "jane")
    known = await web.kit.app.credentials.identify(token, [f"http://127.0.0.1{PREFIX}"])
    principal = known.principal if known else None
    assert principal is not None
    assert (principal.id, principal.user_id, principal.kind) == ("user:jane", "jane", "user")
    assert set(principal.roles) == {"user"}
    [row] = [one for one in await web.kit.audit_rows() if one["rule"] == "oauth-signed-in"]
    assert (row["subject_id"], row["tool_name"]) == ("user:jane", f"{PREFIX}/callback")
    assert "example.com" not in str(row)


async def test_a_person_whose_record_says_admin_is_one(web: Web, flow: Flow) -> None:
    documents, database = web.kit.app.documents.of(NAMESPACE), web.kit.app.gate.database
    async with database.transaction() as tx:
        await documents.write(tx, Create("users", "root", {"roles": {"admin": True}}))
    token = await signed_in(flow, "root")
    assert "get_document" in str((await flow.tools(token)).json())
    other = await signed_in(flow, "jane")
    assert "get_document" not in str((await flow.tools(other)).json())


async def test_a_wrong_proof_signs_nobody_in(web: Web, flow: Flow) -> None:
    state = query_of(await flow.authorize())["state"]
    query = {"state": state, "proof": "bad"}
    headers = {"X-Request-Id": "bad-proof"}
    answer = await flow.http.get(f"{PREFIX}/callback", params=query, headers=headers)
    assert answer.status_code == 403
    assert "The provider&#39;s answer is not right." in answer.text
    [row] = await web.audit_rows("bad-proof")
    assert row["rule"] == "oauth-sign-in-failed"
    again = await flow.http.get(f"{PREFIX}/callback", params=query | {"proof": "good"})
    assert again.status_code == 403, "it has to begin again"


async def test_a_callback_in_another_browser_is_refused(web: Web, flow: Flow) -> None:
    """Otherwise an attacker could have a victim go on with the attacker's account."""
    state = query_of(await flow.authorize())["state"]
    query = {"state": state, "proof": "good"}
    async with web.client(None) as other:
        headers = {"X-Request-Id": "other-browser"}
        answer = await other.get(f"{PREFIX}/callback", params=query, headers=headers)
    assert answer.status_code == 403
    [row] = await web.audit_rows("other-browser")
    assert row["rule"] == "oauth-other-browser"


@pytest.mark.parametrize("change", ["no secret", "another secret", "none"])
async def test_a_callback_with_another_state_is_refused(flow: Flow, change: str) -> None:
    number, _, secret = query_of(await flow.authorize())["state"].partition(".")
    states = {"no secret": number, "another secret": f"{number}.{secret[::-1]}", "none": ""}
    query = {"state": states[change], "proof": "good"}
    assert (await flow.http.get(f"{PREFIX}/callback", params=query)).status_code == 403


async def test_there_is_no_page_for_keys_beside_a_provider(flow: Flow) -> None:
    assert (await flow.http.get(f"{PREFIX}/sign-in")).status_code == 401


@pytest.mark.parametrize("uid", ["a/b", "..", "__x__"])
async def test_an_id_that_no_document_may_have_signs_nobody_in(flow: Flow, uid: str) -> None:
    state = query_of(await flow.authorize())["state"]
    query = {"state": state, "proof": "good", "uid": uid}
    assert (await flow.http.get(f"{PREFIX}/callback", params=query)).status_code == 403


async def test_a_form_is_not_needed_twice(flow: Flow) -> None:
    page = await flow.http.get(await back(flow, proof="good"))
    assert hidden(page)["form_token"]
    assert (await flow.decide(page)).status_code == 303
    assert (await flow.decide(page)).status_code == 403

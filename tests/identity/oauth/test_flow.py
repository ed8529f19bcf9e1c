"""The whole way: discovery, registration, sign-in, consent, tokens, a call, refresh, revocation."""

import pytest
from sqlalchemy import update
from tests.identity.oauth.conftest import BASE
from tests.identity.oauth.flow import PREFIX, REDIRECT, Flow, hidden, query_of, registered
from tests.transports.conftest import ADMIN_KEY, Web, opened_web

from toolgate.db.oauth_tables import grants
from toolgate.gate.principal import Role
from toolgate.identity.keys import KeysOfPacks

pytestmark = pytest.mark.anyio


# Discovery


async def test_a_401_says_where_to_learn_how_to_sign_in(web: Web) -> None:
    async with web.client(None) as http:
        for path in ("/mcp", "/backend-manager/mcp"):
            told = (await http.post(path, json={})).headers["www-authenticate"]
            where = f"{BASE}/.well-known/oauth-protected-resource{path}"
            assert told == f'Bearer realm="toolgate", resource_metadata="{where}", scope="tools"'
            assert (await http.get(where)).json()["resource"] == BASE + path
        other = (await http.get("/v1/tools")).headers["www-authenticate"]
        assert f'resource_metadata="{BASE}/.well-known/oauth-protected-resource"' in other
        wrong = await http.get("/v1/tools", headers={"Authorization": "Bearer nonsense"})
        assert 'error="invalid_token"' in wrong.headers["www-authenticate"]


@pytest.mark.parametrize(
    ("suffix", "resource"),
    [("", PREFIX), ("/mcp", "/mcp"), (PREFIX, PREFIX)],
)
async def test_the_resource_names_its_authorization_server(
    web: Web, suffix: str, resource: str
) -> None:
    async with web.client(None) as http:
        told = await http.get(f"/.well-known/oauth-protected-resource{suffix}")
    assert told.json() == {
        "resource": BASE + resource,
        "authorization_servers": [BASE],
        "scopes_supported": ["tools", "tools:read"],
        "bearer_methods_supported": ["header"],
        "resource_name": "toolgate",
    }


@pytest.mark.parametrize("suffix", ["", "/mcp", PREFIX])
async def test_the_authorization_server_describes_itself(web: Web, suffix: str) -> None:
    async with web.client(None) as http:
        told = (await http.get(f"/.well-known/oauth-authorization-server{suffix}")).json()
        for name in ("authorization", "token", "registration", "revocation"):
            assert told[f"{name}_endpoint"].startswith(f"{BASE}{PREFIX}/")
    assert told["issuer"] == BASE
    assert told["code_challenge_methods_supported"] == ["S256"]
    assert told["token_endpoint_auth_methods_supported"] == ["none"]
    assert told["grant_types_supported"] == ["authorization_code", "refresh_token"]
    assert told["scopes_supported"] == ["tools", "tools:read"]
    assert told["authorization_response_iss_parameter_supported"] is True


async def test_openid_is_not_offered(web: Web) -> None:
    async with web.client(None) as http:
        assert (await http.get("/.well-known/openid-configuration")).status_code == 404


async def test_registration_can_be_switched_off(tmp_path: object) -> None:
    async with opened_web(tmp_path, oauth__registration=False) as web, web.client(None) as http:  # pyright: ignore[reportArgumentType]
        told = (await http.get("/.well-known/oauth-authorization-server")).json()
        assert "registration_endpoint" not in told
        assert (await http.post("/register", json={})).status_code == 401


# The way of a client


async def test_a_client_gets_tokens_and_calls(web: Web, flow: Flow) -> None:
    sent = await flow.decide(await flow.consent_page(ADMIN_KEY))
    told = query_of(sent)
    assert sent.headers["location"].startswith(f"{REDIRECT}?")
    assert (told["state"], told["iss"]) == ("s t&a=te", BASE)
    answer = await flow.exchange(told["code"])
    assert answer.headers["cache-control"] == "no-store"
    tokens = answer.json()
    assert (tokens["token_type"], tokens["expires_in"]) == ("Bearer", 900)
    assert tokens["scope"] == "tools"
    tools = (await flow.tools(tokens["access_token"])).json()
    async with web.client("admin") as direct:
        assert tools == (await direct.get("/v1/tools")).json()


async def test_the_short_paths_are_the_same(web: Web) -> None:
    async with web.client(None) as http:
        told = {"redirect_uris": [REDIRECT], "scope": "x", "anything": {"else": 1}}
        made = (await http.post("/register", json=told)).json()
        assert made["client_name"] == "MCP Client"
        assert made["client_id"].startswith("mcp_")
        flow = Flow(http, made["client_id"])
        sent = await http.get("/authorize", params=flow.question())
        assert f"{PREFIX}/sign-in?request=" in sent.headers["location"]
        wrong = await http.post("/token", data={"grant_type": "authorization_code"})
        assert wrong.json()["error"] == "invalid_request"
        assert (await http.post("/revoke", data={"token": "x"})).status_code == 200


async def test_a_refresh_token_gives_a_new_pair(flow: Flow) -> None:
    first = await flow.tokens(ADMIN_KEY)
    second = (await flow.refresh(first["refresh_token"])).json()
    assert second["access_token"] != first["access_token"]
    third = await flow.refresh(second["refresh_token"])
    assert third.status_code == 200
    assert (await flow.tools(third.json()["access_token"])).status_code == 200


async def test_a_revoked_refresh_token_ends_the_grant(web: Web, flow: Flow) -> None:
    tokens = await flow.tokens(ADMIN_KEY)
    form = {"token": tokens["refresh_token"], "client_id": flow.client_id}
    assert (await flow.http.post(f"{PREFIX}/revoke", data=form)).status_code == 200
    web.kit.app.credentials.forget()
    assert (await flow.tools(tokens["access_token"])).status_code == 401
    assert (await flow.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"


async def test_a_revoked_access_token_ends_alone(web: Web, flow: Flow) -> None:
    tokens = await flow.tokens(ADMIN_KEY)
    form = {"token": tokens["access_token"]}
    assert (await flow.http.post(f"{PREFIX}/revoke", data=form)).status_code == 200
    web.kit.app.credentials.forget()
    assert (await flow.tools(tokens["access_token"])).status_code == 401
    assert (await flow.refresh(tokens["refresh_token"])).status_code == 200


async def test_a_person_may_say_no(flow: Flow) -> None:
    page = await flow.consent_page(ADMIN_KEY)
    sent = await flow.decide(page, "deny")
    told = query_of(sent)
    assert (told["error"], told["state"], told["iss"]) == ("access_denied", "s t&a=te", BASE)
    assert "code" not in told
    assert (await flow.decide(page)).status_code == 403, "what was denied cannot be allowed"


async def test_the_consent_page_shows_who_asks_and_where_the_answer_goes(web: Web) -> None:
    async with web.client(None) as http:
        flow = await registered(http, "https://app.example.com/cb", '<b>Evil</b> & "Co"')
        page = await flow.consent_page(ADMIN_KEY)
    assert "app.example.com" in page.text
    assert "&lt;b&gt;Evil&lt;/b&gt; &amp; &#34;Co&#34;" in page.text
    assert "<b>Evil" not in page.text
    assert "the holder of the admin key" in page.text
    assert "https://app.example.com" in page.headers["content-security-policy"]


# Who signs in


async def test_a_users_key_signs_in_as_the_user(web: Web, flow: Flow) -> None:
    page = await flow.consent_page(web.keys["user"])
    assert "abc123" in page.text
    code = query_of(await flow.decide(page))["code"]
    token = (await flow.exchange(code)).json()["access_token"]
    async with web.client("user") as direct:
        expected = (await direct.get("/v1/tools")).json()
    assert (await flow.tools(token)).json() == expected


async def test_tokens_end_with_the_key_they_came_from(web: Web, flow: Flow) -> None:
    made = await web.kit.app.keys.create(role=Role.ADMIN)
    tokens = await flow.tokens(made.key)
    assert (await flow.tools(tokens["access_token"])).status_code == 200
    await web.kit.app.keys.revoke(made.id)
    assert (await flow.tools(tokens["access_token"])).status_code == 401


@pytest.mark.parametrize("holder", ["pm", "worker"])
async def test_an_agents_key_signs_nobody_in(web: Web, flow: Flow, holder: str) -> None:
    answer = await flow.sign_in(web.keys[holder])
    assert answer.status_code == 403
    assert "That key is not right" in answer.text


async def test_a_nodes_key_signs_nobody_in(web: Web, flow: Flow) -> None:
    database = web.kit.app.gate.database
    key = await database.write(lambda one: KeysOfPacks().issue(one, "worker-01"))
    assert (await flow.sign_in(key)).status_code == 403


async def test_a_wrong_key_may_be_corrected(flow: Flow) -> None:
    answer = await flow.sign_in("wrong")
    assert answer.status_code == 403
    form = {**hidden(answer), "key": ADMIN_KEY}
    assert (await flow.http.post(f"{PREFIX}/sign-in", data=form)).status_code == 303


async def test_a_token_without_the_scope_is_told_which_is_missing(web: Web, flow: Flow) -> None:
    tokens = await flow.tokens(ADMIN_KEY)
    # As earlier versions made grants for scopes that nobody knew.
    without = update(grants).where(grants.c.client_id == flow.client_id).values(scope="")
    await web.kit.app.gate.database.write(lambda c: c.execute(without))
    answer = await flow.tools(tokens["access_token"], **{"X-Request-Id": "no-scope"})
    assert answer.status_code == 403
    told = answer.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in told
    assert 'scope="tools"' in told
    [row] = await web.audit_rows("no-scope")
    assert row["rule"] == "scope-required"


async def test_a_request_for_unknown_scopes_only_is_refused_to_the_client(
    web: Web, flow: Flow
) -> None:
    sent = await flow.authorize({"X-Request-Id": "bad-scope"}, scope="zzz profile")
    assert sent.status_code == 303
    assert sent.headers["location"].startswith(f"{REDIRECT}?error=invalid_scope&")
    told = query_of(sent)
    assert told["error_description"] == "scope must name tools or tools:read, or be left out."
    assert told["state"] == "s t&a=te"
    [row] = await web.audit_rows("bad-scope")
    assert row["rule"] == "oauth-bad-scope"


async def test_unknown_scopes_are_dropped(flow: Flow) -> None:
    tokens = await flow.tokens(ADMIN_KEY, scope="openid tools offline_access")
    assert tokens["scope"] == "tools"

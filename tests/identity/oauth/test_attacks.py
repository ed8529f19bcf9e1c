"""Each known attack on the flow: refused, and audited."""

from typing import Any

import pytest
from sqlalchemy import update
from tests.identity.oauth.conftest import BASE
from tests.identity.oauth.flow import PREFIX, REDIRECT, Flow, query_of, registered
from tests.identity.oauth.refusals import audited, change, named
from tests.transports.conftest import ADMIN_KEY, Web

from toolgate.db.oauth_tables import grants, tokens
from toolgate.gate.audit_records import timestamp

pytestmark = pytest.mark.anyio

WEB_REDIRECT = "https://app.example.com/cb"


# PKCE


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"code_challenge": None, "code_challenge_method": None}, "oauth-missing-pkce"),
        ({"code_challenge_method": "plain"}, "oauth-plain-pkce"),
        ({"code_challenge_method": None}, "oauth-plain-pkce"),
        ({"code_challenge": "short"}, "oauth-bad-pkce"),
    ],
)
async def test_without_pkce_nothing_begins(
    web: Web, flow: Flow, changed: dict[str, str | None], rule: str
) -> None:
    request_id = f"pkce-{abs(hash(str(changed)))}"
    sent = await flow.authorize(named(request_id), **changed)
    told = query_of(sent)
    assert (told["error"], told["state"], told["iss"]) == ("invalid_request", "s t&a=te", BASE)
    assert "set-cookie" not in sent.headers
    assert await audited(web, request_id) == rule


@pytest.mark.parametrize("verifier", ["x" * 43, "x" * 42, "x" * 129, "ü" * 50])
async def test_a_wrong_verifier_gets_no_token(web: Web, flow: Flow, verifier: str) -> None:
    code = await flow.code(ADMIN_KEY)
    request_id = f"verifier-{len(verifier)}-{verifier.isascii()}"
    answer = await flow.exchange(code, named(request_id), code_verifier=verifier)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert await audited(web, request_id) == "oauth-wrong-verifier"


async def test_a_missing_verifier_gets_no_token(web: Web, flow: Flow) -> None:
    code = await flow.code(ADMIN_KEY)
    answer = await flow.exchange(code, named("no-verifier"), code_verifier=None)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert await audited(web, "no-verifier") == "oauth-missing-verifier"


# Codes


async def test_a_reused_code_ends_the_tokens_of_its_first_use(web: Web, flow: Flow) -> None:
    code = await flow.code(ADMIN_KEY)
    first = (await flow.exchange(code)).json()
    assert (await flow.tools(first["access_token"])).status_code == 200
    again = await flow.exchange(code, named("code-reused"))
    assert again.json()["error"] == "invalid_grant"
    assert await audited(web, "code-reused") == "oauth-code-reused"
    web.kit.app.credentials.forget()
    assert (await flow.tools(first["access_token"])).status_code == 401
    assert (await flow.refresh(first["refresh_token"])).json()["error"] == "invalid_grant"


async def test_a_code_of_another_client_is_worth_nothing(web: Web, flow: Flow) -> None:
    code = await flow.code(ADMIN_KEY)
    other = await registered(flow.http)
    other.verifier = flow.verifier
    answer = await other.exchange(code, named("code-of-another"))
    assert answer.json()["error"] == "invalid_grant"
    assert await audited(web, "code-of-another") == "oauth-code-of-another-client"
    assert (await flow.exchange(code)).status_code == 200, "its own client may still use it"


async def test_an_expired_code_is_worth_nothing(web: Web, flow: Flow) -> None:
    code = await flow.code(ADMIN_KEY)
    await change(web, update(grants).values(code_expires_at=timestamp(seconds=-1)))
    answer = await flow.exchange(code, named("old-code"))
    assert answer.json()["error"] == "invalid_grant"
    assert await audited(web, "old-code") == "oauth-code-expired"


async def test_a_code_lives_at_most_a_minute(web: Web, flow: Flow) -> None:
    code = await flow.code(ADMIN_KEY)
    one = grants.select().where(grants.c.id == code.split("_")[1])
    row = await web.kit.app.gate.database.read(lambda c: c.execute(one).one())
    assert row.code_expires_at <= timestamp(seconds=60)
    assert code.encode() not in bytes(str(row), "utf-8"), "only a hash is kept"


@pytest.mark.parametrize(
    ("changed", "error", "rule"),
    [
        ({"redirect_uri": "http://127.0.0.1:7778/callback"}, "invalid_grant", "other-redirect"),
        ({"redirect_uri": "http://127.0.0.1:7777/callback/"}, "invalid_grant", "other-redirect"),
        ({"resource": f"{BASE}/mcp"}, "invalid_target", "other-resource"),
        ({"code": "tgc_" + "0" * 32 + "_" + "0" * 64}, "invalid_grant", "unknown-code"),
        ({"code": "nonsense"}, "invalid_grant", "unknown-code"),
        ({"grant_type": "password"}, "unsupported_grant_type", "bad-request"),
        ({"grant_type": None}, "invalid_request", "bad-request"),
        ({"client_id": None}, "invalid_request", "bad-request"),
    ],
)
async def test_a_code_is_good_only_for_what_it_was_made_for(
    web: Web, flow: Flow, changed: dict[str, Any], error: str, rule: str
) -> None:
    code = await flow.code(ADMIN_KEY)
    request_id = f"misuse-{abs(hash(str(changed)))}"
    answer = await flow.exchange(**{"code": code, "headers": named(request_id), **changed})
    assert (answer.status_code, answer.json()["error"]) == (400, error)
    assert await audited(web, request_id) == f"oauth-{rule}"


async def test_a_tampered_code_is_worth_nothing(web: Web, flow: Flow) -> None:
    code = await flow.code(ADMIN_KEY)
    tampered = code[:-1] + ("0" if code[-1] != "0" else "1")
    answer = await flow.exchange(tampered, named("tampered-code"))
    assert answer.json()["error"] == "invalid_grant"
    assert await audited(web, "tampered-code") == "oauth-unknown-code"
    assert (await flow.exchange(code)).status_code == 200


# Clients and redirects


@pytest.mark.parametrize(
    "redirect",
    [
        "https://app.example.com/other",
        "https://app.example.com/cb/",
        "https://app.example.com/cb?x=1",
        "https://app.example.com/cb/../cb",
        "https://app.example.com/CB",
        "https://evil.example/cb",
        "https://app.example.com.evil.example/cb",
        "https://app.example.com@evil.example/cb",
        "https://evil.app.example.com/cb",
        "https://app.example.com:444/cb",
        "http://app.example.com/cb",
        "javascript:alert(1)//app.example.com/cb",
        "data:text/html,x",
        "//app.example.com/cb",
        "https://app.example.com/cb#x",
        "https://app.example.com/cb\r\nSet-Cookie: a=b",
        "https://app.example.com\\@evil.example/cb",
        "",
    ],
)
async def test_another_redirect_is_told_on_a_page_and_never_followed(
    web: Web, redirect: str
) -> None:
    async with web.client(None) as http:
        flow = await registered(http, WEB_REDIRECT)
        request_id = f"redirect-{abs(hash(redirect))}"
        answer = await flow.authorize(named(request_id), redirect_uri=redirect)
    assert answer.status_code == 400
    assert "location" not in answer.headers
    assert "evil" not in answer.text
    assert await audited(web, request_id) == "oauth-bad-redirect"


@pytest.mark.parametrize(
    ("redirect", "good"),
    [
        ("http://127.0.0.1:5555/callback", True),
        ("http://127.0.0.1/callback", True),
        ("http://localhost:7777/callback", False),
        ("http://127.0.0.1:7777/other", False),
        ("https://127.0.0.1:7777/callback", False),
        ("http://127.0.0.1:7777@evil.example/callback", False),
        ("http://127.0.0.1:99999/callback", False),
    ],
)
async def test_on_loopback_only_the_port_may_differ(flow: Flow, redirect: str, good: bool) -> None:
    answer = await flow.authorize(redirect_uri=redirect)
    assert answer.status_code == (303 if good else 400)


async def test_an_unknown_client_is_told_on_a_page(web: Web, flow: Flow) -> None:
    answer = await flow.authorize(named("unknown-client"), client_id="mcp_" + "0" * 32)
    assert answer.status_code == 400
    assert "location" not in answer.headers
    assert await audited(web, "unknown-client") == "oauth-unknown-client"


@pytest.mark.parametrize("name", ["client_id", "redirect_uri", "state", "code_challenge"])
async def test_a_parameter_given_twice_is_refused(web: Web, flow: Flow, name: str) -> None:
    question = [*flow.question().items(), (name, "https://evil.example/")]
    headers = named(f"twice-{name}")
    answer = await flow.http.get(f"{PREFIX}/authorize", params=question, headers=headers)
    assert "evil" not in answer.headers.get("location", "")
    assert await audited(web, f"twice-{name}") == "oauth-bad-request"


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ({}, "invalid_redirect_uri"),
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": "https://a.example/"}, "invalid_redirect_uri"),
        ({"redirect_uris": [REDIRECT] * 11}, "invalid_redirect_uri"),
        ({"redirect_uris": [1]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://app.example.com/cb"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://a.example/#x"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://a@b.example/"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["javascript:alert(1)"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https:///cb"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://a.example:x/"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://a.example/\u0000"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["/cb"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [REDIRECT], "client_name": 1}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "grant_types": ["implicit"]}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "response_types": "token"}, "invalid_client_metadata"),
        ([], "invalid_client_metadata"),
    ],
)
async def test_a_bad_registration_is_refused(web: Web, told: Any, error: str) -> None:
    request_id = f"register-{abs(hash(str(told)))}"
    async with web.client(None) as http:
        answer = await http.post(f"{PREFIX}/register", json=told, headers=named(request_id))
    assert (answer.status_code, answer.json()["error"]) == (400, error)
    assert await audited(web, request_id) == "oauth-bad-registration"


@pytest.mark.parametrize(
    "redirect",
    ["com.example.app:/x", "https://a.example/cb?x=1", "http://[::1]:80/cb", "cursor://a/b"],
)
async def test_a_good_redirect_comes_back_as_it_is(web: Web, redirect: str) -> None:
    async with web.client(None) as http:
        flow = await registered(http, redirect)
        sent = await flow.decide(await flow.consent_page(ADMIN_KEY))
    joint = "&" if "?" in redirect else "?"
    assert sent.headers["location"].startswith(f"{redirect}{joint}code=tgc_")


# Tokens


async def test_a_token_of_another_audience_is_refused(web: Web, flow: Flow) -> None:
    token = (await flow.tokens(ADMIN_KEY))["access_token"]
    elsewhere = {"Host": "localhost", **named("other-audience")}
    answer = await flow.tools(token, **elsewhere)
    assert answer.status_code == 401
    assert await audited(web, "other-audience") == "credentials-required"
    assert (await flow.tools(token)).status_code == 200


@pytest.mark.parametrize(
    "resource",
    ["https://other.example/mcp", f"{BASE}/v1/tools", f"{BASE}/mcp/", "http://localhost/mcp"],
)
async def test_a_token_for_another_resource_is_not_made(
    web: Web, flow: Flow, resource: str
) -> None:
    request_id = f"resource-{abs(hash(resource))}"
    sent = await flow.authorize(named(request_id), resource=resource)
    assert query_of(sent)["error"] == "invalid_target"
    assert await audited(web, request_id) == "oauth-bad-resource"


async def test_an_expired_token_is_refused(web: Web, flow: Flow) -> None:
    made = await flow.tokens(ADMIN_KEY)
    await change(web, update(tokens).values(expires_at=timestamp(seconds=-1)))
    answer = await flow.tools(made["access_token"], **named("expired-token"))
    assert answer.status_code == 401
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    assert await audited(web, "expired-token") == "credentials-required"
    refused = await flow.refresh(made["refresh_token"], named("expired-refresh"))
    assert refused.json()["error"] == "invalid_grant"
    assert await audited(web, "expired-refresh") in (
        "oauth-refresh-expired",
        "oauth-unknown-refresh-token",
    )


@pytest.mark.parametrize("place", [5, 40, -1])
async def test_a_tampered_token_is_refused(web: Web, flow: Flow, place: int) -> None:
    token = (await flow.tokens(ADMIN_KEY))["access_token"]
    letters = list(token)
    letters[place] = "0" if letters[place] != "0" else "1"
    answer = await flow.tools("".join(letters), **named(f"tampered{place}"))
    assert answer.status_code == 401
    assert await audited(web, f"tampered{place}") == "credentials-required"


@pytest.mark.parametrize("kind", ["refresh_token", "code"])
async def test_only_an_access_token_opens_the_door(flow: Flow, kind: str) -> None:
    code = await flow.code(ADMIN_KEY)
    made = (await flow.exchange(code)).json() | {"code": code}
    assert (await flow.tools(made[kind])).status_code == 401
    disguised = made[kind].replace("tgr_", "tga_").replace("tgc_", "tga_")
    assert (await flow.tools(disguised)).status_code == 401


async def test_an_unsigned_jwt_is_just_a_wrong_key(web: Web, flow: Flow) -> None:
    token = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiIsInJvbGVzIjpbImFkbWluIl19."
    assert (await flow.tools(token, **named("alg-none"))).status_code == 401
    assert await audited(web, "alg-none") == "credentials-required"


async def test_a_reused_refresh_token_ends_its_family(web: Web, flow: Flow) -> None:
    first = await flow.tokens(ADMIN_KEY)
    second = (await flow.refresh(first["refresh_token"])).json()
    third = (await flow.refresh(second["refresh_token"])).json()
    again = await flow.refresh(first["refresh_token"], named("refresh-reused"))
    assert again.json()["error"] == "invalid_grant"
    assert await audited(web, "refresh-reused") == "oauth-refresh-reused"
    web.kit.app.credentials.forget()
    assert (await flow.tools(third["access_token"])).status_code == 401
    assert (await flow.refresh(third["refresh_token"])).json()["error"] == "invalid_grant"


async def test_a_refresh_token_of_another_client_is_worth_nothing(web: Web, flow: Flow) -> None:
    made = await flow.tokens(ADMIN_KEY)
    other = await registered(flow.http)
    answer = await other.refresh(made["refresh_token"], named("refresh-of-another"))
    assert answer.json()["error"] == "invalid_grant"
    assert await audited(web, "refresh-of-another") == "oauth-token-of-another-client"
    assert (await flow.refresh(made["refresh_token"])).status_code == 200


async def test_a_refresh_does_not_widen(web: Web, flow: Flow) -> None:
    made = await flow.tokens(ADMIN_KEY)
    token = made["refresh_token"]
    wider = await flow.refresh(token, named("wider"), scope="tools admin")
    assert wider.json()["error"] == "invalid_scope"
    other = await flow.refresh(token, named("other"), resource=f"{BASE}/mcp")
    assert other.json()["error"] == "invalid_target"
    assert await audited(web, "wider") == "oauth-wider-scope"
    assert await audited(web, "other") == "oauth-other-resource"
    assert (await flow.refresh(token)).status_code == 200


async def test_another_client_cannot_revoke(web: Web, flow: Flow) -> None:
    made = await flow.tokens(ADMIN_KEY)
    form = {"token": made["refresh_token"], "client_id": "mcp_" + "0" * 32}
    answer = await flow.http.post(f"{PREFIX}/revoke", data=form, headers=named("revoke-other"))
    assert answer.status_code == 400
    assert await audited(web, "revoke-other") == "oauth-revoke-by-another-client"
    assert (await flow.refresh(made["refresh_token"])).status_code == 200


async def test_a_client_whose_registration_is_gone_is_told_so(web: Web, flow: Flow) -> None:
    made = await flow.tokens(ADMIN_KEY)
    for client_id in ("mcp_" + "0" * 32, "x" * 32):
        flow.client_id = client_id
        answer = await flow.refresh(made["refresh_token"], named(f"gone-{len(client_id)}"))
        assert answer.json()["error"] == "invalid_client"
        assert client_id not in answer.text
        assert await audited(web, f"gone-{len(client_id)}") == "oauth-unknown-client"


async def test_cookies_of_others_do_not_disturb(flow: Flow) -> None:
    flow.http.headers["Cookie"] = 'other={"a": [1, 2]}; bad cookie; x=@"'
    sent = await flow.authorize()
    name, _, rest = sent.headers["set-cookie"].partition("=")
    flow.http.headers["Cookie"] += f"; {name}={rest.partition(';')[0]}"
    assert (await flow.http.get(sent.headers["location"])).status_code == 200


async def test_a_token_request_is_a_form_and_nothing_else(flow: Flow) -> None:
    form = {"grant_type": "authorization_code", "code": "x", "client_id": "y"}
    assert (await flow.http.post(f"{PREFIX}/token", json=form)).json()["error"] == "invalid_request"
    assert (await flow.http.post(f"{PREFIX}/token", params=form)).status_code == 400
    got = await flow.http.get(f"{PREFIX}/token", params=form)
    assert (got.status_code, got.headers["allow"]) == (405, "POST")

"""A person may allow reading only, and that is all the client can then do."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.identity.oauth.flow import PREFIX, Flow, hidden, query_of, registered
from tests.transports.conftest import ADMIN_KEY, Web, opened_web
from tests.transports.mcp_requests import LEGACY, message_of, tool_call

from toolgate.gate.principal import Role, of_role
from toolgate.gate.tool import Effect
from toolgate.identity.oauth.consent import duration_in_words
from toolgate.identity.oauth.grant_list import grants_in_force
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio

WRITE = "create_document"
CREATED = {"collection": "users", "data": {"email": "new@example.com"}}


async def allowed(flow: Flow, key: str, access: dict[str, str], **asked: str) -> dict[str, Any]:
    page = await flow.consent_page(key, **asked)
    form = {**hidden(page), "decision": "allow", **access}
    sent = await flow.http.post(f"{PREFIX}/consent", data=form)
    return (await flow.exchange(query_of(sent)["code"])).json()


async def names(flow: Flow, token: str) -> set[str]:
    return {tool["name"] for tool in (await flow.tools(token)).json()["tools"]}


async def call(flow: Flow, token: str) -> int:
    bearer = {"Authorization": f"Bearer {token}"}
    answer = await flow.http.post(f"/v1/tools/{WRITE}", headers=bearer, json=CREATED)
    return answer.status_code


@pytest.mark.parametrize(
    ("access", "asked"), [({"access": "read"}, {}), ({}, {"scope": "tools:read"})]
)
async def test_it_restricts_the_grant_for_good(
    web: Web, flow: Flow, access: dict[str, str], asked: dict[str, str]
) -> None:
    """Whether the person ticked it, or the client asked for no more."""
    tokens = await allowed(flow, ADMIN_KEY, access, **asked)
    assert tokens["scope"] == "tools:read"
    everything = await allowed(flow, ADMIN_KEY, {})
    reading = {tool.name for tool in web.kit.app.gate.catalogue if tool.effect is Effect.READ}
    assert await names(flow, everything["access_token"]) & reading == await names(
        flow, tokens["access_token"]
    )
    assert await call(flow, tokens["access_token"]) == 404
    again = (await flow.refresh(tokens["refresh_token"])).json()
    assert (again["scope"], await call(flow, again["access_token"])) == ("tools:read", 404)
    wider = await flow.refresh(again["refresh_token"], scope="tools")
    assert wider.json()["error"] == "invalid_scope"
    assert await call(flow, everything["access_token"]) == 200
    async with web.client(None) as http:
        bearer = {"Authorization": f"Bearer {again['access_token']}"}
        answer = await tool_call(LEGACY, WRITE, CREATED).having(**bearer).send(http)
    assert "error" in message_of(answer)


async def test_it_is_shown_to_the_operator(web: Web, flow: Flow) -> None:
    await allowed(flow, web.keys["user"], {"access": "read"})
    newest = (await grants_in_force(web.kit.app.gate.database))[0]
    assert newest["scope"] == "tools:read"


def shown(text: str) -> str:
    """What a person reads of a page."""
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def counted(kit: Kit) -> str:
    """How many tools of each kind an admin may call now, as the page says it."""
    gate, admin = kit.app.gate, of_role(Role.ADMIN, "a")
    allowed = [one for one in gate.visible(admin) if gate.policy.decide(admin, one).allowed]
    many = Counter(one.effect for one in allowed)
    verbs = {
        Effect.READ: ("reads", "read"),
        Effect.WRITE: ("writes", "write"),
        Effect.DESTROY: ("deletes or overwrites", "delete or overwrite"),
    }
    return " ".join(
        f"1 tool that {one}" if many[effect] == 1 else f"{many[effect]} tools that {more}"
        for effect, (one, more) in verbs.items()
    )


async def test_the_page_says_who_asks_for_what_where_and_for_how_long(web: Web, flow: Flow) -> None:
    page = shown((await flow.consent_page(ADMIN_KEY)).text)
    for told in (
        "toolgate 127.0.0.1 Allow Example ?",
        counted(web.kit),
        "You are an administrator.",
        "Reading only",
        "127.0.0.1:7777 (this computer)",
        "not used for 30 days",
        "every 15 minutes",
    ):
        assert told in page


@pytest.mark.parametrize("settings", [{"writes": False}, {"policy__read_only": True}])
async def test_only_tools_that_may_be_called_now_are_counted(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    async with opened_web(tmp_path, **settings) as web, web.client(None) as http:
        page = shown((await (await registered(http)).consent_page(ADMIN_KEY)).text)
        assert counted(web.kit) in page


async def test_a_user_is_not_warned_of_admin_rights(web: Web, flow: Flow) -> None:
    page = shown((await flow.consent_page(web.keys["user"])).text)
    assert "administrator" not in page
    assert "0 tools that write" in page


async def test_a_client_that_asks_for_reading_offers_no_choice(flow: Flow) -> None:
    page = await flow.consent_page(ADMIN_KEY, scope="tools:read")
    assert "It asked for reading only." in page.text
    assert "checkbox" not in page.text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (900, "15 minutes"),
        (86400, "1 day"),
        (2592000, "30 days"),
        (5400, "90 minutes"),
        (1, "1 second"),
    ],
)
def test_lengths_of_time_in_words(seconds: float, words: str) -> None:
    assert duration_in_words(seconds) == words

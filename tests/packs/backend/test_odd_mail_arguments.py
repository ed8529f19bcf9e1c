"""Whatever JSON comes to the tools of mail, campaigns, contacts and push: no defect, no half write.

Over HTTP, as text: some of it no Python value could be written as (`1e400`, half a character).
"""

import json
from collections.abc import Iterator
from typing import Any, cast

import anyio.from_thread
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, func, select
from tests.effort import effort
from tests.transports.conftest import Web, opened_web

from toolgate.db.tables import changes
from toolgate.packs.backend.sql.contact_tables import contacts
from toolgate.packs.backend.sql.mail_tables import mail_queue
from toolgate.packs.backend.sql.push_tables import push_outbox

CAMPAIGN = "_recurring-newsletter"
PLAIN: dict[str, dict[str, Any]] = {
    "send_email": {
        "to": [{"email": "a@example.com", "name": "A"}, "b@example.com", "abc123"],
        "cc": "c@example.com",
        "bcc": ["d@example.com"],
        "subject": "S",
        "template": "order",
        "html": None,
        "data": {
            "content": {"title": "T", "message": "M", "button": {"text": "B", "url": "https://x"}},
            "order": {"id": 1, "items": [{"name": "N", "quantity": 2, "price": 1.5}], "total": 3},
            "feedback": {"url": "https://x"},
            "preheader": "P",
        },
        "sender": "hello",
        "group": 5,
        "categories": ["one"],
        "sendAt": 1935396000,
        "copy": True,
    },
    "create_campaign": {
        "name": "N",
        "subject": "S",
        "type": "email",
        "preheader": "P",
        "template": "card",
        "data": {"content": {"title": "T", "discountCode": "C"}, "x": {"y": [1]}},
        "segments": ["subscription_paid"],
        "excludeSegments": ["lifecycle_7d"],
        "all": False,
        "sendAt": 1935396000,
        "sender": "marketing",
        "test": False,
    },
    "update_campaign": {
        "id": CAMPAIGN,
        "name": "N",
        "subject": "S",
        "preheader": "P",
        "template": "card",
        "data": {"content": {"title": "T"}},
        "segments": ["subscription_paid"],
        "excludeSegments": [],
        "all": False,
        "sendAt": 1935396000,
        "sender": "marketing",
    },
    "create_contact": {
        "email": "somebody@example.com",
        "firstName": "F",
        "lastName": "L",
        "source": "S",
        "tags": ["t"],
        "skipValidation": True,
    },
    "delete_contact": {"email": "nobody@example.com"},
    "send_notification": {
        "notification": {
            "title": "T",
            "body": "B",
            "icon": "https://x/i",
            "image": "https://x/i",
            "click_action": "https://x/c",
        },
        "filters": {"token": "t", "tags": ["x"], "owner": "o", "limit": 5},
    },
}
LONG = json.dumps("x" * 70_000)
DEEP = "[" * 200 + "]" * 200
ODD = [
    "null",
    '""',
    "1" + "0" * 30,
    "-1" + "0" * 30,
    "9223372036854775808",
    "1" + "0" * 400,
    "1e400",
    "-1e400",
    "1e308",
    "0.1",
    "-0",
    "0",
    "-1",
    "true",
    "false",
    "{}",
    "[]",
    '" "',
    '"\\u0000"',
    '"a\\u0000b"',
    '"\\ud800"',
    '"a\\udfff"',
    '"\\u202e\\u2066abc"',
    '"\\r\\nBcc: x@y.z"',
    '"\\u2028"',
    '"=?x?q?y?="',
    LONG,
    json.dumps("é" * 500),
    json.dumps("é" * 20_001),
    DEEP,
    '{"a":' * 100 + "1" + "}" * 100,
    "[[1]]",
    '{"__x__": 1}',
    '{"": 1}',
    '{"a\\u0000": 1}',
    '{"\\ud800": 1}',
    '{"a.b": 1}',
    '["a", 1, null, {}, [[]]]',
    '{"email": "\\ud800@x.io"}',
    '{"email": "a@x.io", "name": "\\ud800"}',
    json.dumps({"email": "a@x.io", "name": "é" * 500}),
    json.dumps({"email": "a@x.io", "name": "é" * 501}),
    json.dumps([f"u{number}@x.io" for number in range(1001)]),
    json.dumps([[]] * 3000),
    '"a@b@c"',
    '"a@xn--.x"',
    '"a@\\u00e9.\\u00df"',
    '"a@' + "x." * 100 + 'x"',
    '"uid/with/slash"',
    '".."',
    '"now "',
    '"https://[::1"',
    '"http://x/\\u0000"',
    "12345678901234",
    '"2031-05-01T10:00:00+99:99"',
    '"0001-01-01"',
]

SOME = effort(12, 1)
"""Of so many values, one is tried at each place; at the next place, the next."""


def places(arguments: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in arguments."""
    if path:
        yield path
    if isinstance(arguments, dict):
        for name, value in cast("dict[str, Any]", arguments).items():
            yield from places(value, (*path, name))
    elif isinstance(arguments, list):
        for number, value in enumerate(cast("list[Any]", arguments)):
            yield from places(value, (*path, number))


def odd_text(tool: str, changed: list[tuple[tuple[Any, ...], str]]) -> str:
    """The arguments as JSON, with other JSON in some places."""
    arguments = json.loads(json.dumps(PLAIN[tool]))
    changed = sorted(changed, key=lambda one: -len(one[0]))  # what is inside comes first
    for number, (path, _) in enumerate(changed):
        place = arguments
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = f"<odd {number}>"
    text = json.dumps(arguments)
    for number, (_, odd) in enumerate(changed):
        text = text.replace(f'"<odd {number}>"', odd)
    return text


def odd_calls() -> st.SearchStrategy[tuple[str, str]]:
    def of_tool(tool: str) -> st.SearchStrategy[tuple[str, str]]:
        one = st.tuples(st.sampled_from(list(places(PLAIN[tool]))), st.sampled_from(ODD))
        many = st.lists(one, min_size=1, max_size=3, unique_by=lambda found: found[0])
        return many.map(lambda changed: (tool, odd_text(tool, changed)))

    return st.sampled_from(list(PLAIN)).flatmap(of_tool)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Web, Any]]:
    with anyio.from_thread.start_blocking_portal() as portal:
        limits = {"limits__calls_per_minute": 100_000, "limits__refusals_per_minute": 100_000}
        opened = opened_web(tmp_path_factory.mktemp("odd"), plugins=[], **limits)
        with portal.wrap_async_context_manager(opened) as found:
            yield found, portal


def written(web: Web, portal: Any) -> list[int]:
    """How much calls ever wrote; a campaign that is due goes on in the background."""
    counts = [
        select(func.count()).select_from(table) for table in (contacts, mail_queue, push_outbox)
    ]
    by_calls = select(func.count()).where(changes.c.call.is_not(None))
    every = [by_calls, *counts]

    def read(connection: Connection) -> list[int]:
        return [connection.scalar(one) or 0 for one in every]

    return portal.call(web.kit.app.gate.database.read, read)


async def post(web: Web, tool: str, text: str) -> Any:
    headers = {"content-type": "application/json"}
    async with web.client() as client:
        return await client.post(f"/v1/tools/{tool}", content=text.encode(), headers=headers)


def check(web: tuple[Web, Any], tool: str, text: str) -> None:
    opened, portal = web
    before = written(opened, portal)
    answer = portal.call(post, opened, tool, text)
    assert answer.status_code < 500, (tool, text[:500], answer.text[:500])
    if answer.status_code >= 400:
        assert written(opened, portal) == before, (tool, text[:500], answer.text[:500])
        assert answer.json()["error"]


@pytest.mark.parametrize("tool", PLAIN)
def test_each_argument_can_be_anything(web: tuple[Web, Any], tool: str) -> None:
    for at, path in enumerate(places(PLAIN[tool])):
        for odd in ODD[at % SOME :: SOME]:
            check(web, tool, odd_text(tool, [(path, odd)]))


@settings(
    max_examples=effort(40, 1500),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(call=odd_calls())
def test_several_arguments_can_be_anything(web: tuple[Web, Any], call: tuple[str, str]) -> None:
    check(web, *call)


def test_what_is_not_odd_is_taken(web: tuple[Web, Any]) -> None:
    opened, portal = web
    for tool, arguments in PLAIN.items():
        answer = portal.call(post, opened, tool, json.dumps(arguments))
        assert answer.status_code == 200, (tool, answer.text)

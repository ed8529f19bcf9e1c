"""Whatever text a query holds means what a body with the same values means, or is refused alike."""

import json
import math
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_plus, unquote_to_bytes

import httpx2
import pytest
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.gate.tools import offer
from tests.transports.conftest import Web, opened_web
from tests.transports.routed import routed

TEXTS = {"word", "maybe_word", "kind", "anything"}
LISTS_OF_TEXT = {"tags"}
LISTS = {"numbers", "maybe_numbers", "flags"}
OTHERS = {
    *("count", "whole", "small", "ratio", "active", "maybe", "either", "level"),
    *("filter", "filters", "any_object", "any_list"),
}
NUMBERS = st.from_regex(r"[-+]?[0-9]{0,20}(\.[0-9]{0,3})?([eE][-+]?[0-9]{0,3})?", fullmatch=True)
WORDS = st.sampled_from(
    ["true", "false", "null", "True", "NaN", "Infinity", "-Infinity", "", " 5", "5 ", "+5", "0x1",
     "1e400", "-0", "-0.0", "007", "1e2", "20.0", "9223372036854775808", "-9223372036854775809",
     "18446744073709551616", "1" * 5000, '"a"', '"\\ud800"', "[]", "{}", '{"a":1}', '{"a":1.0}',
     '{"a":1,"a":2}', '[{"a":1}]', '{"a":NaN}', "[1,2]", "a&b=c", "%", "%41", "é", "\0", "\ufeff1"]
)  # fmt: skip
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    ),
    max_leaves=5,
).map(json.dumps)
VALUES = WORDS | NUMBERS | JSON | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PAIRS = st.lists(
    st.tuples(st.sampled_from(sorted(TEXTS | LISTS_OF_TEXT | LISTS | OTHERS)), VALUES),
    max_size=6,
)
FEW = settings(max_examples=150, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Any, Web]]:
    folder = tmp_path_factory.mktemp("queries")
    tool = routed("everything", "/made/everything")
    opened = opened_web(folder, offer(tool))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(opened) as web:
        yield portal, web


def of_json(text: str) -> Any:
    """The JSON value of a text, or the text: written anew, with the standard library's parser."""

    def refuse(_: str) -> Any:
        raise ValueError

    def finite(digits: str) -> float:
        number = float(digits)
        return number if math.isfinite(number) else refuse(digits)

    try:
        value = json.loads(text, parse_constant=refuse, parse_float=finite)
        json.dumps(value, ensure_ascii=False).encode()  # whole characters only
    except (ValueError, RecursionError):
        return text
    return value if text.strip() == text else text


def arguments_of(pairs: list[tuple[str, str]]) -> dict[str, Any] | None:
    """What the pairs mean as the body of a call; None where one is given twice."""
    found: dict[str, Any] = {}
    for name, text in pairs:
        if name in LISTS | LISTS_OF_TEXT:
            value = text if name in LISTS_OF_TEXT else of_json(text)
            found.setdefault(name, []).append(value)
        elif name in found:
            return None
        else:
            found[name] = text if name in TEXTS else of_json(text)
    return found


def sent(portal: Any, web: Web, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    async def ask() -> httpx2.Response:
        async with web.client() as client:
            return await client.request(method, path, json=body)

    answer = portal.call(ask)
    return answer.status_code, answer.json()


@FEW
@given(pairs=PAIRS)
@example(pairs=[("count", "+5")])
@example(pairs=[("ratio", "1e400")])
def test_a_query_means_what_a_body_means(
    clients: tuple[Any, Web], pairs: list[tuple[str, str]]
) -> None:
    query = "&".join(f"{name}={quote_plus(text)}" for name, text in pairs)
    asked = sent(*clients, "GET", f"/made/everything?{query}")
    arguments = arguments_of(pairs)
    if arguments is None:
        assert asked[0] == 400
        assert "is given more than once" in asked[1]["error"]["message"]
    else:
        assert asked == sent(*clients, "POST", "/v1/tools/everything", arguments)


@FEW
@given(query=st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=40))
@example(query="word=%ff")
@example(query="%ff=1")
@example(query="=&=&&")
@example(query="count")
def test_any_query_is_answered(clients: tuple[Any, Web], query: str) -> None:
    target = query.replace("#", "%23").replace("?", "%3F")
    status, body = sent(*clients, "GET", f"/made/everything?{target}")
    assert status in (200, 400), body
    try:
        unquote_to_bytes(target).decode()
    except UnicodeDecodeError:
        assert status == 400

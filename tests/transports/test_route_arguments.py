"""What a path, a query and a body say is what JSON would say, by each argument's declared type."""

import ast
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from pydantic import Field
from tests.gate.tools import offer
from tests.transports.conftest import ADMIN_KEY, Web, opened_web
from tests.transports.lines import Line
from tests.transports.routed import Everything, routed

from toolgate.gate.tool import Input
from toolgate.transports.connection.h11 import LimitedH11
from toolgate.transports.connection.known_heads import Connection

pytestmark = pytest.mark.anyio


class Named(Input):
    number: int
    word: str = ""
    names: list[str] = Field(default=[])


TOOLS = (
    routed("everything", "/made/everything"),
    routed("named", "/made/{number}/named", takes=Named),
    routed("removed", "/made/{number}", "DELETE", takes=Named),
    routed("changed", "/made/{number}", "PATCH", takes=Named),
)


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    async with opened_web(tmp_path_factory.mktemp("routes"), offer(*TOOLS)) as opened:
        yield opened


@pytest.fixture(scope="module")
async def client(web: Web) -> AsyncIterator[httpx2.AsyncClient]:
    async with web.client() as opened:
        yield opened


def got(answer: httpx2.Response) -> Any:
    """What the tool was given."""
    assert answer.status_code == 200, answer.text
    return ast.literal_eval(answer.json()["result"]["got"])


def fields(answer: httpx2.Response) -> dict[str, str]:
    """What is wrong, by field."""
    assert answer.status_code == 400, answer.text
    return answer.json()["error"]["details"]["fields"]


GOOD: dict[str, tuple[str, dict[str, Any]]] = {
    "numbers and a flag": (
        "count=5&active=true&ratio=0.5", {"count": 5, "active": True, "ratio": 0.5}
    ),
    "a repeated name": ("tags=a&tags=b", {"tags": ["a", "b"]}),
    "a list of one": ("tags=a", {"tags": ["a"]}),
    "a list of an empty text": ("tags=", {"tags": [""]}),
    "text that looks like a list": ("tags=[1]", {"tags": ["[1]"]}),
    "a list of numbers": ("numbers=1&numbers=-2", {"numbers": [1, -2]}),
    "a list that may be absent": ("maybe_numbers=3", {"maybe_numbers": [3]}),
    "an object": ('filter={"a":1}', {"filter": {"a": 1}}),
    "an encoded object": ("filter=%7B%22a%22%3A1%7D", {"filter": {"a": 1}}),
    "a list of objects": ('filters=[{"a":1},{"a":2}]', {"filters": [{"a": 1}, {"a": 2}]}),
    "any object": ('any_object={"x":[1.5,null]}', {"any_object": {"x": [1.5, None]}}),
    "any list": ('any_list=["a",1,null]', {"any_list": ["a", 1, None]}),
    "digits that are text": ("word=5", {"word": "5"}),
    "true as text": ("word=true", {"word": "true"}),
    "null as text": ("word=null&maybe_word=null", {"word": "null", "maybe_word": "null"}),
    "an object as text": ('word={"a":1}', {"word": '{"a":1}'}),
    "anything is text": ("anything=5", {"anything": "5"}),
    "an empty text": ("word=", {"word": ""}),
    "a name alone": ("word", {"word": ""}),
    "null": ("maybe=null", {"maybe": None}),
    "null for what has a default": ("count=null", {"count": None}),
    "a choice of numbers": ("level=2", {"level": 2}),
    "one of two types": ("either=true", {"either": True}),
    "the other of two types": ("either=7", {"either": 7}),
    "a number with an exponent": ("ratio=1e3", {"ratio": 1e3}),
    "a whole number with a point": ("whole=20.0", {"whole": 20.0}),
    "more than 64 bits": ("count=18446744073709551617", {"count": 2**64 + 1}),
    "less than 64 bits": ("count=-9223372036854775809", {"count": -(2**63) - 1}),
    "minus zero": ("count=-0", {"count": 0}),
    "raw UTF-8": ("word=é", {"word": "é"}),
    "a plus in text": ("word=a+b", {"word": "a b"}),
    "a plus in an exponent": ("ratio=1e%2B3", {"ratio": 1e3}),
}  # fmt: skip


@pytest.mark.parametrize("case", GOOD)
async def test_a_query_is_what_a_body_would_be(client: httpx2.AsyncClient, case: str) -> None:
    query, arguments = GOOD[case]
    answer = await client.get(f"/made/everything?{query}")
    posted = await client.post("/v1/tools/everything", json=arguments)
    assert posted.status_code == 200, posted.text
    assert answer.content == posted.content


BAD = {
    "count": ["", "x", "+5", "%2B5", "007", "5.", ".5", "0x5", "1_000", "1e3", "5.0", "true", "5 "],
    "small": ["6", "-6", "99999999999999999999999999"],
    "ratio": ["NaN", "Infinity", "-Infinity", "inf", "1e999", "01.5", "1,5", ""],
    "active": ["1", "0", "True", "TRUE", "yes", "on", "", "tru", "null,"],
    "filter": ["{", "x", "5", "[]", '{"a":"1"}', '{"a":1,"c":2}', "{'a':1}", '{"a":NaN}', ""],
    "filters": ['{"a":1}', "[1]"],
    "numbers": ["x", "[1]", "1.5", "1,2", ""],
    "either": ["x", "1.5", '"1"'],
    "level": ["3", "x", "1.5"],
    "kind": ["c", "1"],
    "flags": ["true&flags=maybe", "true&flags=true&flags=true&flags=true"],
}


@pytest.mark.parametrize(
    ("name", "text"), [(name, text) for name, texts in BAD.items() for text in texts]
)
async def test_a_wrong_value_is_named_by_its_field(
    client: httpx2.AsyncClient, name: str, text: str
) -> None:
    wrong = fields(await client.get(f"/made/everything?{name}={text}"))
    assert wrong
    assert all(field.startswith(name) for field in wrong)


async def test_every_wrong_value_is_named_in_the_words_of_a_body(
    client: httpx2.AsyncClient,
) -> None:
    asked = await client.get("/made/everything?count=x&active=1&ratio=NaN&filter={")
    texts = {"count": "x", "active": 1, "ratio": "NaN", "filter": "{"}
    posted = await client.post("/v1/tools/everything", json=texts)
    assert fields(asked) == fields(posted)
    assert fields(asked)["count"] == "count must be an integer"


@pytest.mark.parametrize("query", ["count=1&count=1", "word=a&word=b", 'filter={"a":1}&filter='])
async def test_one_value_is_not_given_twice(client: httpx2.AsyncClient, query: str) -> None:
    name = query.partition("=")[0]
    wrong = fields(await client.get(f"/made/everything?{query}"))
    assert wrong == {name: f"{name} is given more than once"}


@pytest.mark.parametrize("name", ["filter[a]", "tags[]", "cont", ""])
async def test_an_unknown_name_is_refused(client: httpx2.AsyncClient, name: str) -> None:
    wrong = fields(await client.get("/made/everything", params={name: "1"}))
    assert wrong[name].startswith(f"Unknown argument {name!r}.")


async def test_deep_json_in_a_query_is_refused(client: httpx2.AsyncClient) -> None:
    deep = "[" * 150 + "]" * 150
    assert "any_list" in fields(await client.get(f"/made/everything?any_list={deep}"))


# The path


async def test_a_part_of_the_path_has_its_declared_type(client: httpx2.AsyncClient) -> None:
    answer = await client.get("/made/7/named?word=x")
    assert got(answer) == {"number": 7, "word": "x", "names": []}
    wrong = fields(await client.get("/made/seven/named"))
    assert wrong == {"number": "number must be an integer"}


# Bodies


@pytest.mark.parametrize("method", ["DELETE", "PATCH"])
async def test_a_body_is_read_beside_path_and_query(
    client: httpx2.AsyncClient, method: str
) -> None:
    body = json.dumps({"names": ["a", "b"]})
    answer = await client.request(method, "/made/7?word=x", content=body)
    assert got(answer) == {"number": 7, "word": "x", "names": ["a", "b"]}
    bare = await client.request(method, "/made/7")
    assert got(bare) == {"number": 7, "word": "", "names": []}


@pytest.mark.parametrize("method", ["DELETE", "PATCH"])
async def test_what_is_in_two_places_is_refused_naming_both(
    client: httpx2.AsyncClient, method: str
) -> None:
    for number in (7, 8):
        body = json.dumps({"number": number, "word": "y"})
        assert fields(await client.request(method, "/made/7?word=x", content=body)) == {
            "number": "number is part of the path. Leave it out of the body",
            "word": "word is given in the query and in the body. Give it once",
        }


@pytest.mark.parametrize("body", ["{", "[1]", "5", '"x"', "\ufeff{}", "NaN"])
async def test_a_body_that_is_no_object_is_refused(client: httpx2.AsyncClient, body: str) -> None:
    for method in ("DELETE", "PATCH"):
        assert fields(await client.request(method, "/made/7", content=body))


async def test_a_body_over_the_limit_is_refused(client: httpx2.AsyncClient) -> None:
    answer = await client.request("DELETE", "/made/7", content=b" " * (4 * 1024 * 1024 + 1))
    assert answer.status_code == 413


async def test_a_get_request_has_no_body(web: Web, client: httpx2.AsyncClient) -> None:
    told = "A GET request has no body here. Put the arguments into the query"
    answer = await client.request("GET", "/made/everything?count=1", content=b'{"count": 2}')
    assert fields(answer) == {"body": told}
    (row,) = await web.audit_rows(answer.headers["x-request-id"])
    assert (row["tool_name"], row["error_type"]) == ("everything", "invalid_arguments")
    empty = await client.request("GET", "/made/everything", headers={"content-length": "0"})
    assert empty.status_code == 200


@pytest.mark.parametrize("connections", [Connection, LimitedH11])
async def test_the_next_request_is_read_from_its_own_first_byte(
    web: Web, connections: type[Any]
) -> None:
    line = Line(web, connections=connections)
    host = f"HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {ADMIN_KEY}\r\n"
    smuggled = f"GET /made/everything?count=1 {host}\r\n"
    body = f"content-length: {len(smuggled)}\r\n\r\n{smuggled}"
    for asked, status in (
        (f"GET /made/everything?count=2 {host}{body}", 400),
        (f"DELETE /made/7 {host}{body}", 400),
        (f"DELETE /made/7/named {host}{body}", 405),
        (f"DELETE /made/7 {host}content-length: 15\r\n\r\n" + '{"names":["a"]}', 200),
        (f"GET /made/7/named {host}\r\n", 200),
    ):
        line.feed(asked.encode())
        reply = await line.reply()
        assert (reply.status, reply.headers.get("connection")) == (status, None), reply.body
    assert line.requests == 5
    await line.hang_up()


# OpenAPI


async def test_openapi_says_how_each_argument_is_written(client: httpx2.AsyncClient) -> None:
    paths = (await client.get("/openapi.json")).json()["paths"]
    shown = {one["name"]: one for one in paths["/made/everything"]["get"]["parameters"]}
    assert shown.keys() == Everything.model_fields.keys()
    in_json = {name for name, one in shown.items() if "content" in one}
    assert in_json == {"filter", "filters", "any_object", "any_list"}
    repeated = {name for name, one in shown.items() if one.get("explode")}
    assert repeated == {"tags", "numbers", "maybe_numbers", "flags"}
    assert shown["count"]["schema"]["type"] == "integer"
    assert paths["/made/{number}"].keys() == {"delete", "patch"}
    removed, changed = paths["/made/{number}"]["delete"], paths["/made/{number}"]["patch"]
    placed = [(one["name"], one["in"], one["required"]) for one in removed["parameters"]]
    assert placed == [("number", "path", True), ("word", "query", False), ("names", "query", False)]
    assert [one["name"] for one in changed["parameters"]] == ["number"]
    body = changed["requestBody"]["content"]["application/json"]["schema"]
    assert (list(body["properties"]), body["required"]) == (["word", "names"], [])

"""Every JSON Schema and example of the seed, for each tool that is there."""

import copy
import re
from typing import Any

import pytest
from jsonschema import Draft7Validator
from tests.packs.network.conftest import Network
from tests.packs.network.seed import SEED, TOOLS, WIDER, plain
from tests.transports.conftest import opened_web

pytestmark = pytest.mark.anyio

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
MORE_KEYWORDS = {"maxLength"}
"""Bounds of ours where the seed has none."""


def leaves(schema: Any, at: str = "") -> dict[str, Any]:
    """Every property by its path, with what is said of it."""
    found: dict[str, Any] = {}
    for name, one in schema.get("properties", {}).items():
        path = f"{at}.{name}".lstrip(".")
        found[path] = {k: v for k, v in one.items() if k not in ("properties", "items")}
        found |= leaves(one, path)
        if "items" in one:
            found |= {f"{path}[]": one["items"], **leaves(one["items"], f"{path}[]")}
    return found


@pytest.mark.parametrize("name", TOOLS)
def test_the_input_schema_is_the_seeds(name: str) -> None:
    ours, seeds = plain(TOOLS[name].input_schema), SEED[name]["input"]
    assert ours.get("required", []) == seeds.get("required", [])
    mine, theirs = leaves(ours), leaves(seeds)
    assert mine.keys() == theirs.keys()
    for path, wanted in theirs.items():
        given = {k: v for k, v in mine[path].items() if k in wanted or k not in MORE_KEYWORDS}
        assert given == wanted, path


@pytest.mark.parametrize("name", [one for one in TOOLS if "output" in SEED[one]])
def test_the_output_schema_has_all_that_the_seeds_has(name: str) -> None:
    ours, seeds = plain(TOOLS[name].output_schema), SEED[name]["output"]
    assert set(seeds["required"]) <= set(ours["required"])
    mine, theirs = leaves(ours), leaves(seeds)
    for path, wanted in theirs.items():
        given = {k: v for k, v in mine[path].items() if k in wanted}
        if (name, "output", path) in WIDER:
            assert set(wanted["type"]) <= set(given["type"])
        else:
            assert given == {k: v for k, v in wanted.items() if k != "required"}, path


async def test_the_example_of_firebase_read(demo: Network) -> None:
    example = SEED["firebase.read"]["example"]
    outcome = await demo.call("firebase.read", **example["request"]["params"])
    wanted = example["response"]["result"]
    given = copy.deepcopy(outcome.body)
    assert TIME.fullmatch(given["metadata"].pop("timestamp"))
    wanted["metadata"].pop("timestamp")
    assert given["metadata"] == wanted["metadata"]
    assert {k: given["data"][k] for k in wanted["data"]} == wanted["data"]
    Draft7Validator(SEED["firebase.read"]["output"]).validate(outcome.body)


async def test_the_example_of_firebase_write(demo: Network) -> None:
    example = SEED["firebase.write"]["example"]
    params = example["request"]["params"]
    answer = await demo.write(**params)
    assert list(answer) == list(example["response"]["result"])
    assert answer["success"] is True
    assert re.fullmatch(r"[-\w]{20}", answer["key"])
    assert TIME.fullmatch(answer["metadata"]["timestamp"])
    assert answer["metadata"]["path"] == params["path"]
    assert answer["metadata"]["operation"] == "push"
    Draft7Validator(SEED["firebase.write"]["output"]).validate(answer)
    assert await demo.read("firestore", f"{params['path']}/{answer['key']}") == params["data"]


async def test_the_examples_over_json_rpc(tmp_path: Any) -> None:
    requests = [SEED[name]["example"]["request"] for name in ("firebase.read", "firebase.write")]
    async with opened_web(tmp_path, packs__enabled=["network"]) as web, web.client() as client:
        single = [(await client.post("/rpc", json=one)).json() for one in requests]
        batch = (await client.post("/rpc", json=requests)).json()
        notified = {k: v for k, v in requests[1].items() if k != "id"}
        told = await client.post("/rpc", json=notified)
        listed = {"database": "firestore", "path": requests[1]["params"]["path"]}
        read = (await client.post("/v1/tools/firebase.read", json=listed)).json()
    for answers in (single, batch):
        assert [one["id"] for one in answers] == ["1", "2"]
        assert all(one["jsonrpc"] == "2.0" for one in answers)
        assert answers[0]["result"]["data"]["name"] == "Research Agent"
        assert answers[1]["result"]["success"] is True
    assert (told.status_code, told.content) == (204, b"")
    assert read["metadata"]["count"] == 4, "the demo's message, and one of each request"

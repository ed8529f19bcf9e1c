"""A tool of one's own that takes a built-in one's place takes its route too."""

from pathlib import Path

import pytest
from tests.transports.conftest import opened_web

pytestmark = pytest.mark.anyio

TOOLS = """
from toolgate.extend import tool


@tool(
    name="health_check",
    description="How we are",
    role="user",
    annotations={"readOnlyHint": True},
    input_schema={"type": "object", "properties": {"deep": {"type": "boolean"}}},
)
async def health_check(ctx, args):
    return {"ours": True, **args}


@tool(
    name="search_entities",
    description="Search elsewhere",
    annotations={"readOnlyHint": True},
    input_schema={"type": "object", "properties": {"q": {"type": "string"}}},
)
async def search_entities(ctx, args):
    return {"found": args}


tools = [health_check, search_entities]
"""


async def test_the_route_leads_to_the_tool_that_replaced_the_built_in_one(tmp_path: Path) -> None:
    file = tmp_path / "tools.py"
    file.write_text(TOOLS)
    health = "/backend-manager/test/health"
    async with opened_web(tmp_path / "data", extend__tools=file) as web:
        async with web.client("user") as user:
            answer = await user.get(health)
            assert (answer.status_code, answer.json()) == (200, {"ours": True})
            wrong = await user.get(health, params={"dep": "1"})
            assert wrong.json()["error"].startswith("Unknown argument 'dep'. Did you mean 'deep'?")
            listed = {one["name"]: one for one in (await user.get("/v1/tools")).json()["tools"]}
            assert listed["health_check"]["route"] == f"GET {health}"
            assert health in (await user.get("/openapi.json")).json()["paths"]
            assert (await user.get("/api/entities")).status_code == 404, "not for users"
        async with web.client() as admin:
            found = await admin.get("/api/entities", params={"q": "rag"})
            assert found.json() == {"found": {"q": "rag"}}
            assert (await admin.get("/api/projects")).status_code == 200

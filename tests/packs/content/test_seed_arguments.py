"""What the pack's tools take: UUIDs, dates, enums and pages."""

from typing import Any

import pytest
from tests.packs.content.seed_calls import (
    DATES,
    ENUMS,
    IN_PROJECT,
    LISTS,
    MINIMAL,
    SCOPED,
    UUIDS,
    ask,
    assert_missing,
    good,
    refused,
)

from toolgate.gate.tool import Effect
from toolgate.packs.content.demo import RAG
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio


# Scope of the pack


async def test_the_pack_has_the_six_tools_and_none_of_them_writes(kit: Kit) -> None:
    tools = [tool for tool in kit.app.gate.catalogue if tool.pack.name == "content"]
    assert [tool.name for tool in tools] == list(MINIMAL)
    assert {tool.effect for tool in tools} == {Effect.READ}


async def test_the_addresses_are_those_of_the_backend(kit: Kit) -> None:
    tools = [tool for tool in kit.app.gate.catalogue if tool.pack.name == "content"]
    assert [tool.route and f"{tool.route.method} {tool.route.path}" for tool in tools] == [
        "GET /api/projects",
        "GET /api/entities",
        "GET /api/entities/{entityId}",
        "GET /api/entities/{entityId}/graph",
        "GET /api/seo/search-performance",
        "GET /api/quotable-blocks",
    ]


@pytest.mark.parametrize("tool", MINIMAL)
async def test_unknown_arguments_are_refused(kit: Kit, tool: str) -> None:
    assert "Unknown argument 'sort'" in await refused(kit, tool, sort="title")


@pytest.mark.parametrize("tool", MINIMAL)
async def test_two_reads_of_the_same_state_have_the_same_bytes(kit: Kit, tool: str) -> None:
    assert (await ask(kit, tool)).raw == (await ask(kit, tool)).raw


@pytest.mark.parametrize("tool", SCOPED)
async def test_the_project_is_required(kit: Kit, tool: str) -> None:
    given = {name: value for name, value in MINIMAL[tool].items() if name != "projectId"}
    outcome = await kit.send(tool, given)
    assert outcome.body == {"error": {"code": "BAD_REQUEST", "message": "projectId is required"}}


@pytest.mark.parametrize("tool", ["get_entity", "get_entity_graph"])
async def test_the_entity_is_required(kit: Kit, tool: str) -> None:
    outcome = await kit.send(tool, IN_PROJECT)
    assert outcome.body == {"error": {"code": "BAD_REQUEST", "message": "entityId is required"}}


# UUIDs


@pytest.mark.parametrize(("tool", "name"), UUIDS)
@pytest.mark.parametrize(
    "value",
    [
        "00000000-0000-0000-a000-000000000001",
        "00000000-0000-6000-a000-000000000001",
        "00000000-0000-7000-a000-000000000001",
        "00000000-0000-4000-7000-000000000001",
        "00000000-0000-4000-c000-000000000001",
        "00000000-0000-4000-a000-00000000000",
        "00000000-0000-4000-a000-0000000000011",
        "g0000000-0000-4000-a000-000000000001",
        "000000000000-4000-a000-000000000001",
        "{00000000-0000-4000-a000-000000000001}",
        "00000000-0000-4000-a000-000000000001\n",
        " 00000000-0000-4000-a000-000000000001",
        "٠0000000-0000-4000-a000-000000000001",
        "psymetric",
    ],
)
async def test_a_malformed_uuid_is_refused(kit: Kit, tool: str, name: str, value: str) -> None:
    assert await refused(kit, tool, **{name: value}) == f"{name} must be a valid UUID"


@pytest.mark.parametrize("value", [1, True, ["x"], {}])
@pytest.mark.parametrize(("tool", "name"), UUIDS)
async def test_a_uuid_is_a_text(kit: Kit, tool: str, name: str, value: Any) -> None:
    assert name in await refused(kit, tool, **{name: value})


@pytest.mark.parametrize("version", "12345")
@pytest.mark.parametrize("variant", "89abAB")
async def test_uuids_of_versions_one_to_five_are_well_formed(
    kit: Kit, version: str, variant: str
) -> None:
    wanted = f"00000000-0000-{version}000-{variant}000-0000000000ff"
    assert_missing(await ask(kit, "get_entity", entityId=wanted), "Entity")
    assert_missing(await ask(kit, "search_entities", projectId=wanted), "Project")


async def test_uuids_in_upper_case_mean_the_same(kit: Kit) -> None:
    for tool in SCOPED:
        loud = {name: value.upper() for name, value in MINIMAL[tool].items()}
        assert loud != MINIMAL[tool]
        assert (await kit.send(tool, loud)).raw == (await ask(kit, tool)).raw
    for tool in ("list_search_performance", "list_quotable_blocks"):
        assert len((await good(kit, tool, entityId=RAG.upper()))["data"]) == 1


# Dates


@pytest.mark.parametrize(("tool", "name"), DATES)
@pytest.mark.parametrize(
    "value",
    [
        "2025-02-30",
        "2025-13-01",
        "2025-00-10",
        "2025-01-00",
        "2023-02-29",
        "0000-01-01",
        "02/20/2025",
        "20.02.2025",
        "2025/02/20",
        "20250220",
        "2025-2-20",
        "2025-W08-4",
        "2025-02",
        "2025-02-20T14:30:00.000+00:00",
        "2025-02-20T14:30:00+00:00",
        "2025-02-20T14:30:00-05:00",
        "2025-02-20T14:30:00.000",
        "2025-02-20T14:30:00",
        "2025-02-20 14:30:00Z",
        "2025-02-20T25:00:00Z",
        "2025-02-20T24:00:00Z",
        "2025-02-20T14:60:00Z",
        "2025-02-20T14:30:60Z",
        "2025-02-30T14:30:00Z",
        "2025-02-20T14:30Z",
        "2025-02-20T14:30:00.Z",
        "2025-02-20T14:30:00.0000Z",
        "2025-02-20T14:30:00.1Z",
        "2025-02-20T14:30:00.12Z",
        "2025-02-20T24:00:00.000Z",
        "2025-02-20T14:60:00.000Z",
        "2025-02-20T14:30:60.000Z",
        "2025-02-30T14:30:00.000Z",
        "",
        "2025-02-20T14:30:00,000Z",
        "2025-02-20t14:30:00z",
        "2025-02-20\n",
        " 2025-02-20",
        "٢٠٢٥-02-20",
        "today",
    ],
)
async def test_other_dates_are_refused(kit: Kit, tool: str, name: str, value: str) -> None:
    assert (await refused(kit, tool, **{name: value})).startswith(f"{name} must be a real date")


@pytest.mark.parametrize(
    "value", ["2025-02-20", "2025-02-20T14:30:00Z", "2025-02-20T14:30:00.000Z"]
)
@pytest.mark.parametrize("name", ["dateStart", "dateEnd"])
async def test_dates_are_read_as_the_specification_prints_them(
    kit: Kit, name: str, value: str
) -> None:
    await good(kit, "list_search_performance", **{name: value})


@pytest.mark.parametrize(("tool", "name"), DATES)
@pytest.mark.parametrize("value", [20250220, 1.5, True, ["2025-02-20"]])
async def test_a_date_is_a_text(kit: Kit, tool: str, name: str, value: Any) -> None:
    assert name in await refused(kit, tool, **{name: value})


@pytest.mark.parametrize(("tool", "name"), DATES)
@pytest.mark.parametrize(
    "value",
    ["2025-02-20", "2024-02-29", "2025-02-20T14:30:00.000Z", "2025-02-20T14:30:00.123Z"],
)
async def test_both_forms_of_a_date_are_taken(kit: Kit, tool: str, name: str, value: str) -> None:
    await good(kit, tool, **{name: value})


async def test_a_timestamp_counts_to_the_millisecond(kit: Kit) -> None:
    for fraction, found in [("000", 1), ("001", 0), ("010", 0), ("100", 0)]:
        body = await good(
            kit,
            "list_quotable_blocks",
            verifiedUntilAfter=f"2025-12-31T00:00:00.{fraction}Z",
            verifiedUntilBefore="2026-01-01",
        )
        assert body["pagination"]["total"] == found


# Enums


@pytest.mark.parametrize(("tool", "name", "options"), ENUMS)
@pytest.mark.parametrize("value", ["nonsense", "GUIDE", "Draft", " standard", "statistic ", "", 1])
async def test_an_unknown_enum_value_is_answered_with_the_valid_ones(
    kit: Kit, tool: str, name: str, options: list[str], value: Any
) -> None:
    told = await refused(kit, tool, **{name: value})
    listed = ", ".join(f"'{one}'" for one in options[:-1]) + f" or '{options[-1]}'"
    assert told == f"{name} must be one of: {listed}"


@pytest.mark.parametrize(("tool", "name", "options"), ENUMS)
async def test_every_listed_enum_value_filters(
    kit: Kit, tool: str, name: str, options: list[str]
) -> None:
    every = (await good(kit, tool))["data"]
    for option in options:
        body = await good(kit, tool, **{name: option})
        assert body["data"] == [row for row in every if row[name] == option]


# Pages


@pytest.mark.parametrize("tool", LISTS)
@pytest.mark.parametrize("name", ["page", "limit"])
@pytest.mark.parametrize("value", [0, -1, "1", 1.5, True, [1], 10**30, float("inf")])
async def test_other_pages_and_limits_are_refused(
    kit: Kit, tool: str, name: str, value: Any
) -> None:
    assert (await refused(kit, tool, **{name: value})).startswith(f"{name} must be ")


@pytest.mark.parametrize("tool", LISTS)
async def test_a_limit_over_one_hundred_is_refused(kit: Kit, tool: str) -> None:
    assert await refused(kit, tool, limit=101) == "limit must be at most 100"
    assert (await good(kit, tool, limit=100))["pagination"]["limit"] == 100


@pytest.mark.parametrize("tool", LISTS)
async def test_a_whole_number_may_have_a_point(kit: Kit, tool: str) -> None:
    outcome = await ask(kit, tool, limit=20.0, page=1.0)
    assert outcome.raw == (await ask(kit, tool)).raw
    assert b'"page":1,"limit":20,' in outcome.raw


@pytest.mark.parametrize("tool", LISTS)
async def test_the_default_is_the_first_page_of_twenty(kit: Kit, tool: str) -> None:
    body = await good(kit, tool)
    assert list(body) == ["data", "pagination"]
    many = len(body["data"])
    assert list(body["pagination"].items()) == [
        ("page", 1), ("limit", 20), ("total", many), ("hasMore", False),
    ]  # fmt: skip


@pytest.mark.parametrize("tool", LISTS)
async def test_pages_of_one_make_up_the_list(kit: Kit, tool: str) -> None:
    every = (await good(kit, tool))["data"]
    assert len(every) > 1
    for page, row in enumerate(every, 1):
        body = await good(kit, tool, page=page, limit=1)
        assert body["data"] == [row]
        more = page < len(every)
        assert body["pagination"] == {
            "page": page, "limit": 1, "total": len(every), "hasMore": more,
        }  # fmt: skip


@pytest.mark.parametrize("tool", LISTS)
async def test_there_is_more_only_before_the_end(kit: Kit, tool: str) -> None:
    total = (await good(kit, tool))["pagination"]["total"]
    for limit, more in [(total - 1, True), (total, False), (total + 1, False)]:
        assert (await good(kit, tool, limit=limit))["pagination"]["hasMore"] is more


@pytest.mark.parametrize("tool", LISTS)
@pytest.mark.parametrize("page", [2, 1_000_000_000])
async def test_a_page_past_the_end_is_empty(kit: Kit, tool: str, page: int) -> None:
    body = await good(kit, tool, page=page, limit=100)
    total = (await good(kit, tool))["pagination"]["total"]
    assert body == {
        "data": [],
        "pagination": {"page": page, "limit": 100, "total": total, "hasMore": False},
    }

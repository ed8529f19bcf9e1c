"""Search performance and quotable blocks, as the contract has them."""

from typing import Any

import pytest
from tests.packs.content.seed_calls import BLOCK, RECORD, good, ids, refused

from toolgate.packs.content.demo import BLOCKS, CONTEXT_WINDOW, ENTITIES, GUIDE, RAG
from toolgate.testing import Kit

pytestmark = pytest.mark.anyio


# list_search_performance


async def test_records_have_their_twelve_fields(kit: Kit) -> None:
    assert len(RECORD) == 12
    rows = (await good(kit, "list_search_performance"))["data"]
    for row in rows:
        assert list(row) == RECORD
    assert [row["entityId"] for row in rows] == [None, CONTEXT_WINDOW, GUIDE, RAG]


async def test_records_come_latest_period_first(kit: Kit) -> None:
    rows = (await good(kit, "list_search_performance"))["data"]
    assert [row["dateStart"][:10] for row in rows] == [
        "2025-06-04", "2025-06-03", "2025-06-02", "2025-06-01",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ({"query": "RAG"}, ["02", "01"]),
        ({"query": "What Is"}, ["01"]),
        ({"pageUrl": "CONCEPTS/"}, ["03", "01"]),
        ({"pageUrl": "concepts/", "query": "rag"}, ["01"]),
        ({"entityId": GUIDE}, ["02"]),
        ({"dateStart": "2025-06-03"}, ["04", "03"]),
        ({"dateStart": "2025-06-03T00:00:00.000Z"}, ["04", "03"]),
        ({"dateStart": "2025-06-03T00:00:00.001Z"}, ["04"]),
        ({"dateEnd": "2025-06-08"}, ["02", "01"]),
        ({"dateEnd": "2025-06-07T23:59:59.999Z"}, ["01"]),
        ({"dateStart": "2025-06-02", "dateEnd": "2025-06-09"}, ["03", "02"]),
        ({"dateStart": "2025-06-02", "dateEnd": "2025-06-02"}, []),
    ],
)
async def test_records_can_be_filtered(kit: Kit, filters: Any, numbers: list[str]) -> None:
    body = await good(kit, "list_search_performance", **filters)
    assert [id[-2:] for id in ids(body)] == numbers
    assert body["pagination"]["total"] == len(numbers)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2025-06-02", "2025-06-01"),
        ("2025-06-01T00:00:00.001Z", "2025-06-01"),
        ("2025-06-01T00:00:00.100Z", "2025-06-01T00:00:00.010Z"),
    ],
)
async def test_a_period_that_ends_before_it_begins_is_refused(
    kit: Kit, start: str, end: str
) -> None:
    told = await refused(kit, "list_search_performance", dateStart=start, dateEnd=end)
    assert told == "dateStart must be <= dateEnd"


# list_quotable_blocks


async def test_blocks_have_their_ten_fields(kit: Kit) -> None:
    assert len(BLOCK) == 10
    rows = (await good(kit, "list_quotable_blocks"))["data"]
    for row in rows:
        assert list(row) == BLOCK


async def test_the_demo_blocks_have_twenty_five_to_fifty_words(kit: Kit) -> None:
    for row in (await good(kit, "list_quotable_blocks"))["data"]:
        assert 25 <= len(row["text"].split()) <= 50
    assert len(BLOCKS) == 3


@pytest.mark.parametrize(
    ("filters", "numbers"),
    [
        ({}, ["03", "02", "01"]),
        ({"entityId": RAG}, ["01"]),
        ({"claimType": "comparison"}, ["02"]),
        ({"topicTag": "rag"}, ["02", "01"]),
        ({"topicTag": "HUNK"}, ["03"]),
        ({"verifiedUntilBefore": "2025-12-31"}, ["03"]),
        ({"verifiedUntilBefore": "2025-12-30"}, []),
        ({"verifiedUntilAfter": "2025-12-31"}, ["03", "01"]),
        ({"verifiedUntilAfter": "2026-06-01"}, ["01"]),
        ({"verifiedUntilAfter": "2026-01-01", "verifiedUntilBefore": "2025-01-01"}, []),
        ({"verifiedUntilAfter": "0001-01-01"}, ["03", "01"]),
    ],
)
async def test_blocks_can_be_filtered(kit: Kit, filters: Any, numbers: list[str]) -> None:
    body = await good(kit, "list_quotable_blocks", **filters)
    assert [id[-2:] for id in ids(body)] == numbers


async def test_every_demo_entity_can_be_got_in_its_project(kit: Kit) -> None:
    for row in ENTITIES:
        body = await good(kit, "get_entity", projectId=row["project_id"], entityId=row["id"])
        assert body["data"]["title"] == row["title"]

"""Files of content: whole round trips, and refusals that leave nothing behind."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select
from tests.packs.content.files import ENTITIES, FIGURES, ROWS, VIDEO, Place, opened

from toolgate.packs.content.importing import BadFile, UnknownProject
from toolgate.packs.content.sql import tables

pytestmark = pytest.mark.anyio


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async for one in opened(f"sqlite:///{tmp_path / 'toolgate.db'}", tmp_path):
        yield one


@pytest.fixture
async def either(database_url: str, tmp_path: Path) -> AsyncIterator[Place]:
    async for one in opened(database_url, tmp_path):
        yield one


async def _all_kinds(place: Place, form: str) -> dict[str, list[dict[str, Any]]]:
    for kind, rows in ROWS.items():
        report = await place.load(place.rows_file(f"{kind}.{form}", rows))
        assert (report.kind, report.stored, report.refused) == (kind, len(rows), [])
    return {kind: await place.rows(kind) for kind in ROWS}


@pytest.mark.parametrize("form", ["csv", "jsonl"])
async def test_every_kind_is_stored_and_a_second_time_changes_nothing(
    either: Place, form: str
) -> None:
    stored = await _all_kinds(either, form)
    by_slug = {row["slug"]: row for row in stored["entities"]}
    assert by_slug["rag"]["summary"] == "Two\nlines, “quoted”"
    assert by_slug["rag"]["status"] == "draft"
    assert by_slug["build"]["updated_at"] == "2025-06-02T00:00:00.000Z"
    assert by_slug["kit"]["id"] == "00000000-0000-4000-a000-000000000107"
    rag, build = by_slug["rag"]["id"], by_slug["build"]["id"]
    ends = {row["relation_type"]: row for row in stored["relations"]}
    assert ends["GUIDE_USES_CONCEPT"]["from_id"] == build
    assert ends["GUIDE_USES_CONCEPT"]["to_entity"] == rag
    assert ends["VIDEO_EXPLAINS_CONCEPT"]["from_entity"] is None
    assert ends["PROJECT_IMPLEMENTS_CONCEPT"]["notes"] == "all of it"
    [block], [figures] = stored["blocks"], stored["performance"]
    assert (block["entity_id"], block["topic_tag_folded"]) == (rag, "rag")
    assert (figures["entity_id"], figures["ctr"]) == (rag, 0.07)
    assert figures["date_end"] == "2025-06-07T00:00:00.000Z"

    again = await _all_kinds(either, form)
    moments = {"created_at", "updated_at", "captured_at"}
    for kind, rows in stored.items():
        same = [{name: row[name] for name in row.keys() - moments} for row in rows]
        assert same == [{name: row[name] for name in row.keys() - moments} for row in again[kind]]
        if kind == "entities":
            assert rows == again[kind]


@pytest.mark.parametrize(
    ("written", "stored"),
    [("09:00:00Z", "09:00:00.000Z"), ("09:00:00.5Z", "09:00:00.500Z")],
)
async def test_a_file_may_write_a_timestamp_with_a_shorter_fraction(
    place: Place, written: str, stored: str
) -> None:
    row = FIGURES | {"capturedAt": f"2025-06-10T{written}"}
    report = await place.load(place.rows_file("p.jsonl", [{**row, "entityId": None}]))
    assert report.refused == []
    [figures] = await place.rows("performance")
    assert figures["captured_at"] == f"2025-06-10T{stored}"


async def test_names_in_snake_case_and_the_api_s_own_ids(place: Place) -> None:
    await place.load(place.rows_file("e.jsonl", ENTITIES))
    stored = await place.rows("entities")
    whole = [
        {name: row[name] for name in row if not name.endswith("_folded") and name != "number"}
        for row in stored
    ]
    report = await place.load(place.rows_file("again.csv", whole))
    assert report.stored == 3
    assert await place.rows("entities") == stored


async def test_search_console(place: Place) -> None:
    text = (
        "Top queries,Page,Clicks,Impressions,CTR,Position\r\n"
        "what is rag,https://x.example/rag,84,1195,7.03%,4.2\r\n"
        "rag,https://x.example/rag,0,3,0.0,11\r\n"
    )
    path = place.file("gsc.csv", text)
    with pytest.raises(BadFile, match="--start and --end"):
        await place.load(path)
    report = await place.load(path, start="2025-06-01", end="2025-06-07")
    assert (report.kind, report.stored) == ("performance", 2)
    found = {row["query"]: row for row in await place.rows("performance")}
    assert found["what is rag"]["ctr"] == 0.0703
    assert found["rag"]["avg_position"] == 11
    assert found["rag"]["date_start"] == "2025-06-01T00:00:00.000Z"
    queries = place.file("q.csv", "Top queries,Clicks,Impressions,CTR,Position\na,1,2,50%,3\n")
    with pytest.raises(BadFile, match=r"need also: pageUrl\. Say it with --page\."):
        await place.load(queries, start="2025-06-01", end="2025-06-07")
    with pytest.raises(BadFile, match="2025-02-30"):
        await place.load(path, start="2025-02-30", end="2025-06-07")


async def test_one_refused_row_refuses_all_by_its_line(place: Place) -> None:
    text = (
        "entityType,title,slug,summary,conceptKind\n"
        'concept,A,a,"one\ntwo\nthree",\n'
        "\n"
        "guide,B,b,,standard\n"
        'news,"C\nc",c,,\n'
        "thing,D,d,,\n"
        "concept,E,a,,\n"
        "concept,F\n"
    )
    report = await place.load(place.file("e.csv", text))
    assert report.stored == 0
    assert [line for line, _ in report.refused] == [6, 9, 10, 11]
    reasons = [reason for _, reason in report.refused]
    assert reasons[0] == "conceptKind is only for concepts"
    assert reasons[1].startswith("entityType must be 'guide'")
    assert reasons[2] == "has the same entityType, slug as line 2"
    assert reasons[3] == "has 2 cells, but the header has 5"
    assert await place.rows("entities") == []
    projects = select(func.count()).select_from(tables.projects)
    assert await place.database.read(lambda c: c.execute(projects).scalar()) == 0


async def test_a_block_that_stands_twice_is_refused_in_words_of_what_the_file_has(
    place: Place,
) -> None:
    await place.load(place.rows_file("e.jsonl", ROWS["entities"]))
    (block,) = ROWS["blocks"]
    report = await place.load(place.rows_file("b.jsonl", [block, block]))
    assert report.refused == [(2, "has the same entityId, text as line 1")]
    named = {**block, "id": "00000000-0000-4000-a000-0000000000b1"}
    other = {**named, "text": "Something else."}
    report = await place.load(place.rows_file("n.jsonl", [named, other]))
    assert report.refused == [(2, "has the same id as line 1")]


async def test_a_refusal_after_stored_batches_takes_them_back(either: Place) -> None:
    rows = [{"entityType": "news", "title": "N", "slug": f"n-{n}"} for n in range(2500)]
    report = await either.load(either.rows_file("bad.jsonl", [*rows, {"title": "N"}]))
    assert (report.stored, report.refused) == (
        0,
        [(2501, "entityType is missing; slug is missing")],
    )
    assert await either.rows("entities") == []
    assert (await either.load(either.rows_file("good.jsonl", rows))).stored == 2500
    assert len(await either.rows("entities")) == 2500


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"clicks": 1201}, "clicks (1201) exceed impressions (1200)"),
        ({"clicks": -1}, "clicks must be greater than or equal to 0"),
        ({"clicks": True}, "clicks must be a number"),
        ({"clicks": 1.5}, "clicks must be a valid integer"),
        ({"impressions": 2**31}, "impressions must be less than"),
        ({"ctr": 1.2}, "ctr must be less than or equal to 1"),
        ({"ctr": "7,03%"}, "ctr must be a share"),
        ({"ctr": "nan"}, "ctr must be a finite number"),
        ({"ctr": "inf%"}, "ctr must be a finite number"),
        ({"ctr": "1e999"}, "ctr must be a finite number"),
        ({"ctr": float("nan")}, "is no JSON"),
        ({"avgPosition": float("inf")}, "is no JSON"),
        ({"avgPosition": "NaN"}, "avgPosition must be a finite number"),
        ({"avgPosition": "1e999"}, "avgPosition must be a finite number"),
        ({"impressions": "inf"}, "impressions must be a finite number"),
        ({"impressions": 1e300}, "impressions must be less than or equal to 2147483647"),
        ({"impressions": "9" * 5000}, "impressions must be a whole number up to 2147483647"),
        ({"clicks": 2**31, "impressions": 2**31 - 1}, "clicks must be less than or equal to"),
        ({"avgPosition": 0}, "avgPosition must be greater than 0"),
        ({"avgPosition": "inf"}, "avgPosition must be a finite number"),
        ({"pageUrl": "/rag"}, "pageUrl must be a whole URL"),
        ({"pageUrl": "https://[x"}, "pageUrl must be a whole URL"),
        ({"dateStart": "2025-02-30"}, "dateStart must be a real date"),
        ({"dateStart": "2025-06-08"}, "dateStart must be <= dateEnd"),
        ({"id": "7"}, "id must be a valid UUID"),
        ({"projectId": VIDEO}, "projectId names another project"),
        ({"entityId": "concept/none"}, "entityId names no entity of this project: 'concept/none'"),
        ({"query": "a\0b"}, "query must not hold the character NUL"),
        ({"query": "\ud800"}, "is no JSON"),
        ({"query": "  "}, "query is missing"),
        ({"qurey": "a"}, "unknown: 'qurey' (did you mean 'query'?)"),
        ({"page": "https://x.example"}, "names a field twice"),
    ],
)
async def test_figures_that_cannot_be(place: Place, change: dict[str, Any], reason: str) -> None:
    rows = [FIGURES | {"query": "good"}, FIGURES | change]
    report = await place.load(place.rows_file("p.jsonl", rows))
    [(line, told)] = report.refused
    assert (line, told[: len(reason)]) == (2, reason)
    assert await place.rows("performance") == []


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"relationType": "LIKES", "from": "a/b", "to": "a/b"}, "relationType must be one of"),
        (
            {"relationType": "GUIDE_USES_CONCEPT", "from": "concept/rag", "to": "concept/rag"},
            "from must be a guide, and 'concept/rag' is a concept",
        ),
        (
            {
                "relationType": "GUIDE_USES_CONCEPT",
                "from": "guide/build",
                "to": "concept/rag",
                "toType": "news",
            },
            "GUIDE_USES_CONCEPT leads from guide to concept",
        ),
        (
            {"relationType": "VIDEO_EXPLAINS_GUIDE", "from": "video/x", "to": "guide/build"},
            "from must be the UUID of a video",
        ),
        ({"relationType": "GUIDE_USES_CONCEPT", "from": "guide/build"}, "toId is missing"),
    ],
)
async def test_relations_that_cannot_be(place: Place, row: dict[str, Any], reason: str) -> None:
    await place.load(place.rows_file("e.jsonl", ENTITIES))
    report = await place.load(place.rows_file("r.jsonl", [row]))
    assert [told[: len(reason)] for _, told in report.refused] == [reason]


async def test_other_projects_stay_untouched(place: Place) -> None:
    await _all_kinds(place, "jsonl")
    [block] = await place.rows("blocks")
    await place.load(place.rows_file("e.jsonl", ENTITIES[:2]), project="q")
    foreign = ROWS["blocks"][0] | {"id": block["id"]}
    report = await place.load(place.rows_file("b.jsonl", [foreign]), project="q")
    assert "is that of another row" in report.refused[0][1]
    named = {"entityId": block["entity_id"], "text": "x", "claimType": "statistic"}
    report = await place.load(place.rows_file("b.jsonl", [named]), project="q")
    assert "names no entity of this project" in report.refused[0][1]
    report = await place.load(place.rows_file("e.jsonl", ENTITIES[2:]), project="q")
    assert "is that of another row" in report.refused[0][1]
    assert await place.rows("blocks") == [block]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("a.csv", b"", "is empty"),
        ("a.jsonl", b"\n", "has no rows"),
        ("a.csv", b"entityType,title,slug\n", "has no rows"),
        ("a.csv", b"entityType,,slug\nnews,A,a\n", "Column 2 has no name"),
        ("a.csv", b"news,A title,a\nnews,B title,b\n", "do not say what the rows are"),
        ("a.csv", b"entityType,titel,slug\nnews,A,a\n", "'titel' (did you mean 'title'?)"),
        ("a.csv", b"title,slug\nA,a\n", "need also: entityType"),
        ("a.csv", b"slug,title,Title\na,A,A\n", "'title' and 'Title' are the same"),
        ("a.csv", "entityType,title,slug\nnews,Ä,a\n".encode("latin-1"), "not UTF-8 (line 2)"),
        ("a.csv", b'entityType,title,slug\nnews,A,a\nnews,"B,b\n', "from line 3 on"),
        ("a.jsonl", b"{\n", "line 1 is no JSON"),
        ("a.jsonl", b"x" * 2_000_000, "longer than"),
        ("a.txt", b"x", "neither .csv nor .jsonl"),
    ],
)
async def test_files_that_cannot_be_read(
    place: Place, name: str, text: bytes, sentence: str
) -> None:
    with pytest.raises(BadFile) as refused:
        await place.load(place.file(name, text))
    assert sentence in str(refused.value)


async def test_broken_json_lines_are_named(place: Place) -> None:
    good = json.dumps(ENTITIES[0])
    report = await place.load(place.file("e.jsonl", f"[1]\n{{}}\n{good}\n\n{{broken\n"))
    assert [line for line, _ in report.refused] == [1, 2, 5]
    assert report.refused[2][1].startswith("is no JSON: ")


async def test_a_dry_run_and_an_unknown_project(place: Place) -> None:
    path = place.rows_file("e.csv", ENTITIES)
    report = await place.load(path, dry_run=True)
    assert (report.rows, report.stored, report.refused) == (3, 0, [])
    with pytest.raises(UnknownProject) as unknown:
        await place.load(path, create_project=None)
    assert unknown.value.known == []
    with pytest.raises(BadFile, match="slug such as"):
        await place.load(path, project="Not a slug")
    with pytest.raises(BadFile, match="for performance"):
        await place.load(path, start="2025-06-01", end="2025-06-07")
    assert await place.rows("entities") == []

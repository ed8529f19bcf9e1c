"""Arguments that JSON can say and nobody means: refused in a sentence, and nothing is written."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from toolgate.gate.outcomes import Outcome
from toolgate.packs.backend.publishing.drafts import PostImages
from toolgate.testing import Kit, opened_kit
from toolgate.testing.kit import ADMIN

pytestmark = pytest.mark.anyio

TOOLS = (
    "create_post",
    "update_post",
    "firestore_read",
    "firestore_write",
    "firestore_query",
    "get_stats",
    "run_hook",
    "create_backup",
    "generate_uuid",
    "health_check",
    "get_user",
    "get_subscription",
)
WRITTEN = ("documents", "changes", "backend_post_intents")
INNER = ["collection", "where", "filter", "field", "matches", "operator", "orderBy", "users", "zz"]
"""Names inside of arguments."""


@dataclass(frozen=True, slots=True)
class Odd:
    """A kit that examples of failures do not spell out."""

    kit: Kit = field(repr=False)


class Long(str):
    """A long text that examples of failures do not spell out."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"Long({len(self)})"


def deep(levels: int, value: Any = 1) -> Any:
    """A value inside of many lists and maps."""
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


TEXTS = st.one_of(
    st.text(st.characters(codec=None), max_size=20),
    st.sampled_from(
        [
            "",
            " ",
            "a\x00b",
            "\ud800",
            "\udfff\ud800",
            "../x",
            "/",
            "a/b",
            "users/x",
            "cron/",
            "cron/" + 150 * "a",
            "cron/daily\x00",
            "__a__",
            "https://[",
            "https://[::1/blog/x",
            "blog/\ud800",
            "![a](//\ud800/x.png)",
            "(" * 100,
            "v5",
            Long("9" * 5000),
            Long("x" * 10_001),
            Long("é" * 500_001),
        ]
    ),
)
NUMBERS = st.sampled_from(
    [
        *(0, -1, 1, 2**31, 2**63, -(2**63) - 1, 10**400, 0.5, -0.0, 1e308),
        *(float("inf"), float("-inf"), float("nan")),
    ]
)
ODD = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS, st.just(deep(25)), st.just(deep(300))),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(TEXTS, st.sampled_from(INNER)), inner, max_size=3),
    ),
    max_leaves=6,
)

VALUES = st.lists(ODD, min_size=3, max_size=3)
UNHURRIED: dict[str, Any] = {
    "suppress_health_check": [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
}


@pytest.fixture(scope="module")
async def odd(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Odd]:
    folder = tmp_path_factory.mktemp("odd")
    async with opened_kit(folder, writes=True, demo_data=True, packs__enabled=["backend"]) as one:
        yield Odd(one)


async def state(kit: Kit) -> Any:
    """All that calls of these tools may write."""

    def read(connection: Any) -> Any:
        return [connection.execute(text(f"SELECT * FROM {one}")).all() for one in WRITTEN]

    rows = await kit.app.gate.database.read(read)
    places = [kit.app.settings.data / one for one in ("repositories", "blobs")]
    return rows, sorted(file for place in places for file in place.rglob("*"))


async def check(kit: Kit, tool: str, arguments: Any) -> Outcome:
    before = await state(kit)
    outcome = await kit.send(tool, arguments)
    assert outcome.status < 500, (tool, outcome.body)
    if outcome.status >= 400:
        error = outcome.body["error"]
        assert error.strip(), tool
        assert "Traceback" not in error
        assert len(error) < 20_000
        assert await state(kit) == before, tool
    return outcome


@pytest.mark.parametrize("tool", TOOLS)
@given(base=st.booleans(), names=st.lists(st.integers(0, 9), max_size=3), values=VALUES)
@settings(max_examples=40, **UNHURRIED)
async def test_odd_arguments_are_refused_in_a_sentence(
    odd: Odd, tool: str, base: bool, names: list[int], values: list[Any]
) -> None:
    found = next(one for one in odd.kit.app.gate.visible(ADMIN) if one.name == tool)
    known = [*found.input.model_fields, "unknown"]
    drawn = {known[n % len(known)]: one for n, one in zip(names, values, strict=False)}
    await check(odd.kit, tool, {**(found.example if base else {}), **drawn})


@pytest.mark.parametrize("tool", TOOLS)
@given(arguments=ODD)
@settings(max_examples=10, **UNHURRIED)
async def test_arguments_of_any_shape_are_refused_in_a_sentence(
    odd: Odd, tool: str, arguments: Any
) -> None:
    await check(odd.kit, tool, arguments)


async def test_a_hook_with_a_long_name_is_not_found(odd: Odd) -> None:
    for end in ("a" * 150, "", "daily\x00", "../daily", "daily/" * 20):
        outcome = await check(odd.kit, "run_hook", {"path": f"cron/{end}"})
        assert (outcome.status, outcome.body) == (404, {"error": f"Hook not found: cron/{end}"})


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("".join(f"![a](//h/{n}) " for n in range(31)), "more than 30 images; at most 30"),
        ("![a](//h/1)" * 301, "shows images more than 300 times; at most 300"),
    ],
)
async def test_images_of_a_post_are_counted_before_they_are_named(
    odd: Odd, monkeypatch: pytest.MonkeyPatch, body: str, told: str
) -> None:
    def name(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(PostImages, "_name", name)
    outcome = await check(odd.kit, "create_post", {"title": "Many images", "body": body})
    assert (outcome.status, told in outcome.body["error"]) == (400, True)

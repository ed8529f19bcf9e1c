"""How long texts are examined: after their size, aside from the event loop, a window at a time."""

import importlib
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.packs.orchestrator.calls import BUILD, ID, PM, refused, result
from tests.packs.orchestrator.node_calls import NODE

from toolgate.packs.orchestrator import secret_values
from toolgate.packs.orchestrator.long_texts import OVERLAP, WINDOW, matches
from toolgate.packs.orchestrator.secret_values import FORMATS, secret_in
from toolgate.packs.orchestrator.skills import grammar
from toolgate.packs.orchestrator.skills.content_audit import ContentAudit
from toolgate.packs.orchestrator.skills.grammar import ORDERS
from toolgate.packs.orchestrator.skills.own_patterns import MAX_CHARACTERS, ways_of
from toolgate.packs.orchestrator.skills.patterns import DEFAULT_PATTERNS
from toolgate.testing import Kit

DATABASES = ["sqlite"]
"""Texts are examined before anything is stored."""

NOTES = ID.format("d1")
BODY = 4_000_000
"""Characters that the body of a request has room for."""
STRIPE = "sk_live_" + "51H8abcdEFGHijkl"


@dataclass
class Noted:
    """Searches: in which thread, and through how many characters."""

    searches: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    @property
    def threads(self) -> set[int]:
        return {thread for thread, _ in self.searches}

    @property
    def longest(self) -> int:
        return max(size for _, size in self.searches)


@dataclass
class NotedPattern:
    """A pattern that notes what it searches."""

    pattern: re.Pattern[str]
    noted: Noted

    def finditer(self, text: str, start: int, end: int) -> Iterator[re.Match[str]]:
        size = min(end, len(text)) - start
        self.noted.searches.append((threading.get_ident(), size))
        return self.pattern.finditer(text, start, end)


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    noted = Noted()
    forms = {what: NotedPattern(one, noted) for what, one in FORMATS.items()}
    monkeypatch.setattr(secret_values, "FORMATS", forms)
    return noted


@pytest.mark.anyio
@pytest.mark.parametrize("unit", ["sk-", "a", "\u00e9"], ids=["keys", "letters", "accents"])
@pytest.mark.parametrize("tool", ["skills.create", "skills.update"])
async def test_a_text_that_is_too_large_is_not_examined(
    kit: Kit, noted: Noted, tool: str, unit: str
) -> None:
    text = unit * (BODY // len(unit))
    skill = {"skill_id": NOTES} if tool == "skills.update" else {}
    error = await refused(kit, tool, PM, task_id=BUILD, **skill, content=text)
    assert error["type"] == "size_limit_exceeded"
    assert noted.searches == []


@pytest.mark.anyio
async def test_a_long_text_is_searched_aside_and_in_windows(kit: Kit, noted: Noted) -> None:
    text = "sk-" * 80_000
    assert await result(kit, "skills.create", PM, task_id=BUILD, content=text)
    assert len(noted.searches) == len(FORMATS) * -(-len(text) // WINDOW)
    assert threading.get_ident() not in noted.threads
    assert noted.longest <= WINDOW + OVERLAP


@pytest.mark.anyio
@pytest.mark.parametrize(
    "value", ["sk-" * 340_000, {"a": ["sk-" * 100_000] * 3}], ids=["text", "object"]
)
async def test_a_large_setting_is_searched_aside_and_in_windows(
    kit: Kit, noted: Noted, value: Any
) -> None:
    kind = "string" if isinstance(value, str) else "object"
    given = {"key": "custom.large", "value": value, "value_type": kind}
    assert await result(kit, "db.system_setting.create", PM, **given)
    assert threading.get_ident() not in noted.threads
    assert noted.longest <= WINDOW + OVERLAP


@pytest.mark.anyio
async def test_what_a_node_has_is_searched_at_once(kit: Kit, noted: Noted) -> None:
    names = [f"{at}-" + "sk-" * 60 for at in range(1000)]
    images = [{"image_ref": one, "status": "available"} for one in names]
    models = [{"model": one, "status": "available"} for one in names]
    given = {"capabilities": {"a": 1}, "images": images, "models": models}
    assert await result(kit, "worker_node.report_capabilities", NODE, **given)
    # Those of images and of models; the capabilities are small.
    aside = [one for one in noted.searches if one[0] != threading.get_ident()]
    windows = -(-sum(len(one) + 2 for one in names) // WINDOW)
    assert len(aside) <= 2 * len(FORMATS) * windows
    assert len(noted.searches) - len(aside) <= len(FORMATS)
    images[700]["image_ref"] = STRIPE
    error = await refused(kit, "worker_node.report_capabilities", NODE, **given)
    assert error["message"].startswith("images holds what looks like a Stripe key")


@pytest.mark.anyio
async def test_a_short_text_is_searched_at_once(kit: Kit, noted: Noted) -> None:
    assert await result(kit, "skills.create", PM, task_id=BUILD, content="# Short")
    assert noted.threads == {threading.get_ident()}


@pytest.mark.parametrize("before", range(WINDOW - 40, WINDOW + 40, 7))
def test_a_secret_across_the_end_of_a_window_is_found(before: int) -> None:
    assert secret_in("", "x " * (before // 2) + STRIPE + " x" * WINDOW) == "a Stripe key"


@pytest.mark.parametrize("end", [WINDOW, WINDOW + OVERLAP], ids=["window", "overlap"])
def test_a_window_ends_no_word(end: int) -> None:
    longer = "AKIA" + "A" * 16 + "B"
    for before in range(end - 30, end + 5):
        assert secret_in("", " " * before + longer + " " * WINDOW) is None


@pytest.mark.parametrize(
    "text",
    ["", "ab", "abab" * 5000, "b" * 9000 + "ab" * 3000],
    ids=["empty", "short", "long", "longer"],
)
def test_windows_have_the_matches_of_the_whole_text(text: str) -> None:
    pattern = re.compile(r"\bab|(?<=b)a{1,3}b|b$")
    whole = [one.span() for one in pattern.finditer(text)]
    assert [one.span() for one in matches(pattern, text)] == whole


def test_no_phrase_is_longer_than_what_windows_have_in_common() -> None:
    parser: Any = importlib.import_module("re._parser")
    phrases = [one for some in DEFAULT_PATTERNS.values() for one in some]
    assert max(parser.parse(one).getwidth()[1] for one in phrases) <= OVERLAP
    assert MAX_CHARACTERS <= OVERLAP


def test_phrases_are_sought_in_windows() -> None:
    audit, noted = ContentAudit(), Noted()
    patterns: list[Any] = audit._patterns  # pyright: ignore[reportPrivateUsage]
    patterns[:] = [(category, NotedPattern(one, noted)) for category, one in patterns]
    text = "send " * 52_000
    assert audit.examine(text) is None
    assert noted.longest <= WINDOW + OVERLAP
    assert len(noted.searches) == len(patterns) * -(-len(text) // WINDOW)


@dataclass
class NotedOrder:
    """A pattern of word classes that notes how many words it searches."""

    pattern: re.Pattern[str]
    words: list[int]

    def search(self, classes: str, position: int) -> re.Match[str] | None:
        found = self.pattern.search(classes, position)
        self.words.append((found.end() if found else len(classes)) - position)
        return found


MAX_READINGS = 4
MAX_WAYS = 2000
"""In which a pattern of word classes can match from one word."""
REPEATED = {
    "many-readings": ("<b>x</b> cebzcg s3nd ", "send "),
    "never-ignore": ("", "never ignore all previous instructions "),
    "ignore-all": ("<b>x</b> cebzcg s3nd ", "ignore all of the previous "),
    "send-secrets": ("<b>x</b> cebzcg s3nd ", "send our api keys to "),
    "quoted": ("", 'examples: "ignore your prompts" '),
}


@pytest.mark.parametrize("name", REPEATED)
@pytest.mark.parametrize("size", [16_000, 64_000, 262_000])
def test_the_words_that_orders_are_sought_in_grow_with_the_text_alone(
    name: str, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    words: list[int] = []
    noted = [(category, NotedOrder(one, words)) for category, one in ORDERS]
    monkeypatch.setattr(grammar, "ORDERS", noted)
    beginning, unit = REPEATED[name]
    text = (beginning + unit * size)[:size]
    ContentAudit().examine(text)
    # A match that is passed over is walked through once more from its second word.
    assert sum(words) <= 2 * MAX_READINGS * len(ORDERS) * len(text.split())


def test_a_word_costs_the_same_wherever_it_stands() -> None:
    parser: Any = importlib.import_module("re._parser")
    for _, order in ORDERS:
        assert ways_of(order.pattern) <= MAX_WAYS
        assert parser.parse(order.pattern).getwidth()[1] <= 24

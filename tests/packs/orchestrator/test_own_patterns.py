"""Patterns that operators add by setting: taken if no text can make them slow."""

import time

import pytest

from toolgate.packs.orchestrator.settings import OrchestratorSettings
from toolgate.packs.orchestrator.skills.content_audit import ContentAudit

SLOW = {
    "star": r"open.*vault",
    "plus": r"open\s+the",
    "open-end": r"a{3,}b",
    "nested": r"(a{0,20}){0,20}b",
    "nested-plus": r"(a+)+b",
    "branches": r"(?:a|a){0,30}b",
    "two-gaps": r"a.{0,60}b.{0,60}c",
    "long": r"a{5000}b",
    "long-inside": r"(?:a{100}){100}b",
    "ahead": r"x(?=.*y)",
    "ahead-long": r"x(?=a{5000}y)",
    "lazy": r"a.*?b",
    "possessive": r"a++b",
}
TAKEN = {
    "words": r"open the vault",
    "choice": r"(?:open|unlock) (?:the )?(?:vault|safe)s?",
    "gap": r"send [^.]{0,60} to eve",
    "class": r"\b[a-z0-9-]{1,20}\.evil\.example\b",
    "plus-in-class": r"[+*]{1,3}",
    "escaped": r"c\+\+ \*",
    "ahead": r"vault(?! door)",
    "named": r"(?P<what>vault)s?",
}


@pytest.mark.parametrize("name", SLOW)
def test_a_pattern_that_a_text_could_make_slow_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="a text could make it slow"):
        OrchestratorSettings(skill_patterns={"secret_bypass": (SLOW[name],)})


@pytest.mark.parametrize("name", TAKEN)
def test_a_pattern_with_bounds_is_taken(name: str) -> None:
    given = {"secret_bypass": (TAKEN[name],)}
    assert OrchestratorSettings(skill_patterns=given).patterns == given


@pytest.mark.parametrize("pattern", ["(", "[", "a{2,1}"], ids=["group", "class", "bounds"])
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="no regular expression"):
        OrchestratorSettings(skill_patterns={"secret_bypass": (pattern,)})


def test_the_slowest_that_is_taken_ends_on_the_longest_text() -> None:
    slowest = r"a[^.]{0,9}a[^.]{0,9}b"
    settings = OrchestratorSettings(skill_patterns={"secret_bypass": (slowest,)})
    audit = ContentAudit(settings.patterns)
    start = time.thread_time()
    assert audit.examine("a" * 256 * 1024) is None
    assert time.thread_time() - start < 30

"""How much the audit of skills finds of what its patterns were not made for.

Both sets were written before the patterns, and no pattern was changed after they were measured:
42 of 80 attacks were found, and 3 of 194 honest texts refused. Half of the honest ones are
paragraphs of these docs. A pattern that is made for one of these texts takes it out of its set.
"""

import json
from pathlib import Path

from toolgate.packs.orchestrator.skills.content_audit import ContentAudit

TEXTS = Path(__file__).parent / "unseen_texts"
LEAST_FOUND, ATTACKS = 40, 80
MAX_REFUSED, HONEST = 4, 194


def examined(name: str) -> list[bool]:
    """Of each text of a set, whether something was found in it."""
    audit = ContentAudit()
    texts: list[str] = json.loads((TEXTS / f"{name}.json").read_text())
    return [audit.examine(one) is not None for one in texts]


def test_half_of_the_attacks_that_nobody_had_in_mind_are_found() -> None:
    found = examined("attacks")
    assert len(found) == ATTACKS
    assert sum(found) >= LEAST_FOUND


def test_few_honest_texts_are_refused() -> None:
    found = examined("honest")
    assert len(found) == HONEST
    assert sum(found) <= MAX_REFUSED

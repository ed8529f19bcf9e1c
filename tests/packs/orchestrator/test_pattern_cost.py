"""Texts made to be slow to examine: what is looked for costs what a text's length says, no more.

The processor time of this thread counts, so other processes do not matter; a pattern that
backtracks exceeds these bounds many times over.
"""

import importlib
import re
import threading
import time
from collections.abc import Callable
from typing import Any, cast

import pytest
from tests.effort import effort
from tests.packs.orchestrator.calls import BUILD, refused, result
from tests.packs.orchestrator.node_calls import NODE

from toolgate.packs.orchestrator.secret_values import redacted, secret_in
from toolgate.packs.orchestrator.skills.content_audit import ContentAudit, Finding
from toolgate.packs.orchestrator.skills.patterns import DEFAULT_PATTERNS
from toolgate.packs.orchestrator.tools.skill_texts import check_texts
from toolgate.testing import Kit

DATABASES = ["sqlite"]
"""Texts are examined before anything is stored."""
AUDIT = ContentAudit()
MOST = 256 * 1024
MAX_SECONDS = 15
"""For a text of the largest size; about one is usual."""
MAX_RATIO = 3.5
"""Of the time for twice the length: 2 is linear, 4 quadratic."""
TRIES = 6
MODULES = (
    "skills.content_audit",
    "skills.hidden_text",
    "skills.encodings",
    "skills.grammar",
    "skills.look_alikes",
    "skills.markdown",
    "skills.plain_text",
    "secret_values",
)

REPEATED = {
    "spaces": " ",
    "tabs": "\t",
    "lines": "\n",
    "letters": "a",
    "one-letter-words": "a ",
    "dots": "a.",
    "underscores": "a_",
    "stars": "a*",
    "emphasis": "*_~`",
    "comment-starts": "<!-",
    "brackets": "<",
    "tags": "<a ",
    "attributes": "<a b='",
    "attributes-in-turn": "<a b='<a b=\"",
    "styles": "<p display : ",
    "hidden": "<p hidden ",
    "templates": "<template",
    "closed-templates": "<template></template>",
    "fences": "~~~a\n",
    "two-fences": "```\n~~~\n",
    "growing-fences": "```a\n````a\n`````a\n",
    "backticks": "` `` ``` ",
    "references": "[//]: # ",
    "entities": "&#",
    "entity-digits": "&#00",
    "marks": "\u0316\u0301",
    "phrases": "\ufdfa",
    "joiners": "\u0627\u200c",
    "flags": "\U0001f3f4",
    "base64": "QUJD",
    "base64-lines": "QUJDREVG\n",
    "hexadecimal": "41 ",
    "digits-in-words": "a1",
    "bars": "| ",
    "hyphens": "a-\n",
    "ignore": "ignore ",
    "ignore-all": "ignore all all all all your ",
    "never": "never ",
    "never-ignore": "never ignore all previous instructions ",
    "never-or": "never a, a, a or ",
    "send": "send ",
    "send-secrets": "send secrets ",
    "show": "show me the your the your ",
    "bypass": "bypass all the your ",
    "you-are-now": "you are now a x x x x ",
    "quoted": 'examples: "ignore your prompts" ',
    "rotated": "vafgehpgvba ",
    "urls": "a://",
    "url-users": "a://b:",
    "tokens": "-eyJ",
    "token-parts": "eyJaaaaaaaaaa.",
    "keys": "-----BEGIN ",
    "headers": "authorization: basic ",
    "sk": "sk-",
    "aws": "aws ",
    "secrets": "secret aB3",
    "passwords": "password=",
    "bearers": "bearer a1",
    "toolgate": "tg_0123456789abcdef_",
}


def repeated(name: str, size: int) -> str:
    unit = REPEATED[name]
    return (unit * (size // len(unit) + 1))[:size]


def seconds(work: Callable[[], Any]) -> float:
    start = time.thread_time()
    work()
    return time.thread_time() - start


def is_linear(work: Callable[[int], Any], size: int) -> bool:
    """Whether twice the size takes about twice the time; the best of each is compared."""
    best = {size: float("inf"), 2 * size: float("inf")}
    for _ in range(TRIES):
        for one in best:
            best[one] = min(best[one], seconds(lambda one=one: work(one)))
        if best[2 * size] < MAX_RATIO * best[size]:
            return True
    return False


def patterns() -> dict[str, re.Pattern[str]]:
    """Every pattern of the modules, and of the audit itself, by name."""
    found: dict[str, re.Pattern[str]] = {}
    for name in MODULES:
        module = importlib.import_module(f"toolgate.packs.orchestrator.{name}")
        for key, value in vars(module).items():
            many = cast("dict[str, Any]", value) if isinstance(value, dict) else {"": value}
            found |= {
                f"{name}.{key}.{inner}": one
                for inner, one in many.items()
                if isinstance(one, re.Pattern)
            }
    phrases = [one for some in DEFAULT_PATTERNS.values() for one in some]
    return found | {f"phrase-{at}": re.compile(one) for at, one in enumerate(phrases)}


@pytest.mark.parametrize("name", REPEATED)
def test_a_text_twice_as_long_takes_twice_as_long(name: str) -> None:
    assert is_linear(lambda size: AUDIT.examine(repeated(name, size)), effort(8, 16) * 1024)
    assert is_linear(lambda size: secret_in("a", repeated(name, size)), effort(16, 32) * 1024)


@pytest.mark.parametrize(
    "text",
    [
        "<!--" + " " * MOST + "x-->",
        "<!--" + "\n " * (MOST // 2),
        repeated("tags", MOST),
        repeated("fences", MOST),
        repeated("marks", MOST // 2),
        " ".join("`" * length for length in range(1, 700)),
        "".join("`" * length + "a\n" for length in range(700, 3, -1)),
        repeated("ignore-all", MOST),
        repeated("send", MOST),
        repeated("base64", MOST),
        "&#" + "9" * MOST,
        "[//]: #" + " " * MOST + "x",
        "<p style='display" + " " * MOST + "x>",
    ],
    ids=[
        "comment-of-spaces",
        "open-comment",
        "tags",
        "fences",
        "marks",
        "growing-backticks",
        "shrinking-fences",
        "ignore-all",
        "send",
        "base64",
        "entity",
        "reference",
        "style",
    ],
)
def test_the_longest_text_is_examined_in_time(text: str) -> None:
    assert seconds(lambda: AUDIT.examine(text)) < MAX_SECONDS


def test_the_longest_value_is_searched_for_secrets_in_time() -> None:
    for name in ("dots", "urls", "url-users", "tokens", "token-parts", "keys", "headers", "sk"):
        text = repeated(name, MOST)
        assert seconds(lambda text=text: secret_in("a", {"a": text})) < MAX_SECONDS, name
        assert seconds(lambda text=text: redacted(text)) < MAX_SECONDS, name


def test_no_pattern_backtracks_through_a_long_text() -> None:
    texts = {name: repeated(name, 16 * 1024) for name in REPEATED}
    found = patterns()
    assert len(found) > 50
    for pattern_name, pattern in found.items():
        for text_name, text in texts.items():
            spent = seconds(lambda p=pattern, t=text: sum(1 for _ in p.finditer(t)))
            assert spent < 1, f"{pattern_name} on {text_name}"


class Watched(ContentAudit):
    """Notes in which thread a text is examined."""

    thread: int | None = None

    def examine(self, text: str) -> Finding | None:
        self.thread = threading.get_ident()
        return super().examine(text)


@pytest.mark.anyio
async def test_a_long_text_is_examined_aside_from_the_event_loop() -> None:
    audit = Watched()
    assert await check_texts("pm", audit, None, "# Short")
    assert audit.thread == threading.get_ident()
    assert await check_texts("pm", audit, None, "# Long\n" * 10_000)
    assert audit.thread not in (None, threading.get_ident())


@pytest.mark.anyio
async def test_calls_with_texts_made_to_be_slow_are_answered(kit: Kit) -> None:
    hidden = "<!--" + " " * 250_000 + "x-->"
    error = await refused(kit, "skills.create", task_id=BUILD, content=hidden)
    assert error["details"]["category"] == "hidden_instructions"
    for unit in ("<a ", "~~~a\n"):
        text = (unit * MOST)[: MOST - 1]
        assert await result(kit, "skills.create", task_id=BUILD, content=text)
    facts = {"capabilities": {"a": "a." * 30_000}}
    assert await result(kit, "worker_node.report_capabilities", NODE, **facts)

"""The text of HTML that a caller brings: its words, and work that grows with its length alone."""

import sys
import threading
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from toolgate.packs.backend.mail import composing
from toolgate.packs.backend.mail.html_text import TextReader, text_of_html
from toolgate.packs.backend.tools.email import MAX_HTML
from toolgate.testing import Kit, opened_kit

HOSTILE = [
    "<", "<<", "</", "</ ", "<!", "<!-", "<!--", "<!-->", "<!---", "--", "-->", "--!>", "<![",
    "<![CDATA[", "]]>", "<?", "<?x", "<a", "<a ", "<a/", "<a\n", "<a >", "<a b", "<a b=", "<a =",
    "<a b='", '<a b="', "<a b='\"", "<a href=x ", "<a href=http://x>", "<a href=x></a>", "</a>",
    "<a href='&amp;", "<p>", "</p>", "<p", "<div><", "<br>", "<br/", "<table>", "<li>x", "<script>",
    "<script></scrip", "</script>", "<style><", "<title></titl", "<textarea>", "<head>", "</head>",
    "<head><body>", "<body ", "<xmp>", "&", "&&", "&#", "&#x", "&#9", "&#x41;", "&#xg", "&amp",
    "&amp;", "&notit;", "&" + "a" * 31, "&" + "a" * 32, " ", "\n", "\t\n", "\x0c", "\u2028", "=",
    "'", '"', ">", "x", "é", "\U0001f600", "<\u0130", "x<a " + " " * 40, "<a " + "b " * 20,
]  # fmt: skip
SIZES = [1_000, 20_000, 60_000]
NAMES = [repr(one[:12]) for one in HOSTILE]
LOOKS_A_CHARACTER = 3
LINES_A_CHARACTER = 40


def of_length(pattern: str, length: int) -> str:
    return (pattern * (length // len(pattern) + 1))[:length]


@contextmanager
def counted_lines() -> Generator[list[int]]:
    """How many lines of Python run."""
    lines = [0]

    def count(_frame: FrameType, event: str, _argument: Any) -> Any:
        lines[0] += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        yield lines
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("pattern", HOSTILE, ids=NAMES)
@pytest.mark.parametrize("length", [*SIZES, MAX_HTML])
def test_no_html_is_looked_at_again_and_again(pattern: str, length: int) -> None:
    reader = TextReader(of_length(pattern, length))
    reader.read()
    assert reader.looked_at <= LOOKS_A_CHARACTER * length + 10


@pytest.mark.parametrize("pattern", HOSTILE, ids=NAMES)
def test_the_steps_grow_with_the_length_alone(pattern: str) -> None:
    steps = list[int]()
    for length in (1_000, 2_000):
        with counted_lines() as lines:
            text_of_html(of_length(pattern, length))
        steps.append(lines[0])
        assert lines[0] <= LINES_A_CHARACTER * length + 100
    assert steps[1] <= 2 * steps[0] + 100


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<h1>Hi &amp; you</h1><p>a < b</p>", "Hi & you\n\na < b\n"),
        ("<p>Go <a class=x href='https://x.io/?a=1&amp;b=2'>on</a></p>",
         "Go on (https://x.io/?a=1&b=2)\n"),
        ("<a href=javascript:x>no</a> <a>none</a>", "no none\n"),
        ("<title>T</title><style>p{a>b}</style>x<script>'</p>'</script>y", "xy\n"),
        ("<head><meta charset=utf-8>unseen<body>seen", "seen\n"),
        ("a<!-- <b> -- > -->b<!DOCTYPE html>c<?x?>d<!-->e", "abcde\n"),
        ("&#65;&#x42;&#0;&#x110000;&#99999999999;&#xD800; &notit; &zzz;",
         "AB\ufffd\ufffd\ufffd\ufffd ¬it; &zzz;\n"),
        ("a<br>b<BR/>c<div>d</DIV>e", "a\nb\ncd\ne\n"),
        ("<p title='>'>quoted</p>", "quoted\n"),
        ("x<p unended", "x\n"),
        ("", "\n"),
    ],
)  # fmt: skip
def test_the_words_are_those_that_people_see(html: str, text: str) -> None:
    assert text_of_html(html) == text


def test_a_number_of_half_a_million_digits_is_no_character() -> None:
    assert text_of_html("&#" + "9" * MAX_HTML) == "\ufffd\n"
    assert text_of_html("&#" + "0" * MAX_HTML + "65;") == "A\n"


@pytest.fixture
async def kit(tmp_path: Path) -> AsyncIterator[Kit]:
    async with opened_kit(tmp_path, packs__enabled=["backend"]) as opened:
        yield opened


@pytest.mark.anyio
@pytest.mark.parametrize("pattern", ["<![", "<a ", "<!--", "&#9", "\n", "é"])
async def test_a_mail_of_any_html_is_taken_and_read_beside_the_event_loop(
    kit: Kit, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    threads = list[int]()

    def noted(html: str) -> str:
        threads.append(threading.get_ident())
        return text_of_html(html)

    monkeypatch.setattr(composing, "text_of_html", noted)
    html = of_length(pattern, MAX_HTML)
    done = await kit.call("send_email", to="a@example.com", subject="S", html=html)
    assert done.status == 200, done.text
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()

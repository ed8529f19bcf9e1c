"""Reading a `.env` file: variables of one project, as Node's dotenv and Docker write them."""

import re
from collections.abc import Mapping

ASSIGNMENT = re.compile(
    r"""^[^\S\n]*(?:export[^\S\n]+)?([A-Za-z_][\w.-]*)[^\S\n]*=[^\S\n]*
    ('[^']*'|"(?:\\.|[^"\\])*"|[^'"\s\#][^\#\n]*?|)
    [^\S\n]*(?:\#[^\n]*)?$""",
    re.MULTILINE | re.VERBOSE | re.DOTALL,
)
ESCAPED = re.compile(r"\\(.)", re.DOTALL)
ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}


def parse(text: str) -> tuple[Mapping[str, str], list[tuple[int, str]]]:
    r"""Every NAME=VALUE, and every other line that is no comment, with its number.

    A value in quotes may go over several lines; in double quotes `\n` is a line break. Nothing in
    a value is replaced: `$NAME` is just text.
    """
    variables: dict[str, str] = {}
    rest: list[tuple[int, str]] = []
    text = text.removeprefix("\ufeff").replace("\r\n", "\n") + "\n"
    start, number = 0, 1
    while start < len(text):
        if match := ASSIGNMENT.match(text, start):
            variables[match[1]] = _value(match[2])
            end = match.end()
        else:
            end = text.index("\n", start)
            line = text[start:end].strip()
            if line and not line.startswith("#"):
                rest.append((number, line))
        number += text.count("\n", start, end + 1)
        start = end + 1
    return variables, rest


def _value(text: str) -> str:
    if text.startswith("'"):
        return text[1:-1]
    if text.startswith('"'):
        return ESCAPED.sub(lambda match: ESCAPES.get(match[1], match[0]), text[1:-1])
    return text

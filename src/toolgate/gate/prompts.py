"""A prompt as a value: what a pack offers under MCP `prompts/list` and `prompts/get`."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

MAX_QUOTED = 200


@dataclass(frozen=True, slots=True)
class PromptArgument:
    """One argument a person fills in."""

    name: str
    description: str
    required: bool
    values: tuple[str, ...] = ()
    """What can be filled in, where that is a fixed list."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A named text for a model, rendered from its arguments.

    `render` expects every required argument to be present.
    """

    name: str
    title: str
    description: str
    arguments: tuple[PromptArgument, ...]
    render: Callable[[Mapping[str, str]], str]
    tools: tuple[str, ...] = ()
    """The tools it speaks of: a caller who may not see them is not shown the prompt."""


def quote(value: str, most: int = MAX_QUOTED) -> str:
    """The value as one JSON string on one line, so that it reads as data only.

    Nothing inside can end the quotes or open a code block: quotes, backticks and every
    invisible character are written as escapes. What is longer than `most` is cut.
    """
    text = value if len(value) <= most else value[: most - 1] + "…"
    return f'"{"".join(_escape(character) for character in text)}"'


def _escape(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if character in '"`':
        return f"\\u{ord(character):04x}"
    return character if character.isprintable() else json.dumps(character)[1:-1]

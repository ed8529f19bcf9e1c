"""What an artifact is called: a relative path, compared by its bytes.

Nothing is folded: `A` and `a`, and the same letter in Unicode's NFC and NFD, are different paths.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo, WithJsonSchema
from pydantic_core import PydanticCustomError

from toolgate.gate.arguments import TOLD_FORMAT
from toolgate.packs.orchestrator.pack import WithoutSecret
from toolgate.packs.orchestrator.unseen_text import FILLERS, unseen_in

MAX_BYTES = 1024
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
AFTER_SURROGATES, BEFORE_SURROGATES = 0xE000, 0xD7FF
LAST = 0x10FFFF
LOOK_EMPTY = re.compile(
    rf"[\u2800{FILLERS}]|(?:^|(?<=[\x00-\x7f]))[\ufe00-\ufe0f\U000e0100-\U000e01ef]"
)
"""A variation selector after an emoji chooses its shape."""


def path_problem(path: str) -> str | None:
    """What is wrong with a path, as the rule that it breaks."""
    if problem := _text_problem(path):
        return problem
    if path.startswith("/"):
        return "must be relative: leave out the / at its beginning"
    if "\\" in path:
        return "must have / between its parts, not \\"
    parts = path.split("/")
    if "" in parts:
        return "must have a name between two / and none at its end (a/b, not a//b or a/)"
    if "." in parts or ".." in parts:
        return "must not have . or .. as a part"
    return None


def new_path_problem(path: str) -> str | None:
    """What is wrong with the path of an artifact to be stored, which people will read."""
    if problem := path_problem(path):
        return problem
    if unseen := unseen_in(path):
        return (
            f"must not have the character {unseen}: what is not seen, or turns text round, lets "
            "one path look like another"
        )
    if LOOK_EMPTY.search(path):
        return "must not have fillers or variation selectors: they let one path look like another"
    if any(part != part.strip() for part in path.split("/")):
        return "must not have spaces at the ends of its parts"
    return None


def _text_problem(text: str) -> str | None:
    if CONTROL.search(text):
        return "must not have control characters such as NUL or a line end"
    if len(text.encode()) > MAX_BYTES:
        return f"must have at most {MAX_BYTES} bytes as UTF-8"
    return None


def _path(value: str, info: ValidationInfo) -> str:
    return _checked(value, info, path_problem(value))


def _new_path(value: str, info: ValidationInfo) -> str:
    return _checked(value, info, new_path_problem(value))


def _prefix(value: str, info: ValidationInfo) -> str:
    return _checked(value, info, _text_problem(value))


def _checked(value: str, info: ValidationInfo, problem: str | None) -> str:
    if problem:
        told = {"field": info.field_name, "problem": problem}
        raise PydanticCustomError(TOLD_FORMAT, "{field} {problem}", told)
    return value


PATH_SCHEMA = WithJsonSchema({"type": "string", "minLength": 1, "maxLength": MAX_BYTES})
Path = Annotated[str, Field(min_length=1), AfterValidator(_path), PATH_SCHEMA]
NewPath = Annotated[str, Field(min_length=1), AfterValidator(_new_path), WithoutSecret, PATH_SCHEMA]
"""Stricter than what is read: what an older version stored stays within reach."""
Prefix = Annotated[
    str, AfterValidator(_prefix), WithJsonSchema({"type": "string", "maxLength": MAX_BYTES})
]


def end_of(prefix: str) -> str | None:
    """The first text behind all that begin with a prefix, by bytes; None where there is none.

    The order of code points is that of the bytes of UTF-8.
    """
    kept = prefix.rstrip(chr(LAST))
    if not kept:
        return None
    last = ord(kept[-1])
    following = AFTER_SURROGATES if last == BEFORE_SURROGATES else last + 1
    return kept[:-1] + chr(following)

"""From raw arguments to a tool's typed Input; every problem at once, in plain words."""

import difflib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, cast, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails, PydanticSerializationError, to_json

from toolgate.gate.catalogue import AnyTool
from toolgate.gate.errors import (
    MAX_NAME,
    GateError,
    InvalidArguments,
    Problem,
    TooLarge,
)
from toolgate.gate.known_names import fields_of, names_at
from toolgate.gate.validation_errors import errors_of, first_errors

MAX_ARGUMENTS = 1000
MAX_PROBLEMS = 100
MAX_NAMED = 10
MAX_SHOWN = 100
MAX_BITS = 63
MAX_COUNTED = 4 * 1024 * 1024
"""Where a tool takes more, transports compare what was sent, and the tool looks at its file: to
count would be to copy it."""
TOLD = "told"
"""Error type of validators whose message is meant for the caller as it stands."""
TOLD_FORMAT = "told_format"
"""The same, where a text has not the form that it must have."""
TOLD_PRIVATE = "told_private"
"""The same, where a text holds a secret: it is not told back."""
WHOLE = "arguments"
"""The field that a rule about several arguments speaks of."""
TOLD_MISSING = "told_missing"
"""The same, where one of several arguments must be given."""
NAMED = "error_name"
"""In the context of such an error: what the pack calls it."""
REQUIRED = "is required"
RULES = {TOLD: "value", TOLD_FORMAT: "format", TOLD_PRIVATE: "secret", TOLD_MISSING: "missing"}


def parse(tool: AnyTool, arguments: Any) -> Any:
    """Validate arguments, or raise `InvalidArguments` naming each field and rule."""
    values: Any = arguments
    if not isinstance(arguments, dict):
        values = _as_object(values)
    if len(values) > MAX_ARGUMENTS:  # each that is unknown is a problem, which takes its time
        message = f"there are {len(values)} arguments, over the limit of {MAX_ARGUMENTS}"
        raise InvalidArguments([Problem(WHOLE, "range", message)])
    if tool.limits.body_bytes is not None:
        _check_size(tool.name, values, tool.limits.body_bytes)
    try:
        return tool.read(values)
    except ValidationError as invalid:
        return _parse_without_nulls(tool, values, invalid)


def _parse_without_nulls(tool: AnyTool, values: dict[str, Any], invalid: ValidationError) -> Any:
    """The arguments without nulls that mean nothing, if that helps; else every problem is told."""
    try:
        errors = first_errors(invalid, tool.input, values, tool.world)
    except UnicodeEncodeError:
        raise _not_unicode() from None
    if (fewer := _without_nulls(tool, values, errors)) is not None:
        return parse(tool, fewer)
    problems = [_problem(one, tool.input) for one in errors[:MAX_PROBLEMS]]
    if more := invalid.error_count() - len(problems):
        problems.append(Problem(WHOLE, "value", f"and {more} more problems"))
    raise InvalidArguments(problems if errors else [_too_many(more, values)]) from None


def _too_many(number: int, arguments: dict[str, Any]) -> Problem:
    """That more is wrong than can be told, and which arguments can hold that much."""
    large = [shorten(name) for name, one in arguments.items() if isinstance(one, list | dict)]
    where = f" in {', '.join(large[:MAX_NAMED])}" if large else ""
    return Problem(WHOLE, "value", f"there are {number} problems{where}, too many to name each")


def _check_size(tool: str, arguments: dict[str, Any], most_bytes: int) -> None:
    """Refuse arguments over the tool's own limit; counted as JSON, the same on every transport."""
    if most_bytes > MAX_COUNTED:
        return
    try:
        size = len(to_json(arguments))
    except PydanticSerializationError:
        raise _not_unicode() from None
    if size > most_bytes:
        raise TooLarge(
            f"The arguments have {size} bytes, over the limit of {most_bytes} of {tool}. Send less."
        )


def _not_unicode() -> InvalidArguments:
    """There is half of a surrogate pair in a text, which cannot be written out anywhere."""
    return InvalidArguments([Problem("arguments", "format", "arguments must be valid Unicode")])


def _without_nulls(
    tool: AnyTool, arguments: dict[str, Any], errors: Sequence[ErrorDetails]
) -> dict[str, Any] | None:
    """The arguments without optional ones that are null, if one of these was refused.

    Models send null for what they leave out. It is no value of these, so nothing is lost.
    """
    fields = fields_of(tool.input)
    refused_names = {str(error["loc"][0]) for error in errors if error["loc"]}
    left_out = {
        name
        for name, value in arguments.items()
        if value is None
        and name in refused_names
        and name in fields
        and not fields[name].is_required()
    }
    return {k: v for k, v in arguments.items() if k not in left_out} if left_out else None


def problem_of(invalid: ValidationError) -> str:
    """The first problem of something else than arguments, without a word of what it holds."""
    if not (errors := errors_of(invalid)):
        return f"it has {invalid.error_count()} problems"
    first = errors[0]
    _, words = _WORDS.get(first["type"], ("value", _says("is not valid")))
    return f"{dotted_path(first['loc']) or 'it'} {words(first)}"


def _as_object(arguments: Any) -> dict[str, Any]:
    """No arguments at all are fine; what a transport could not read is told here."""
    if isinstance(arguments, GateError):
        raise arguments
    if arguments is not None:
        raise InvalidArguments(
            [Problem("arguments", "type", "arguments must be a JSON object of named values")]
        )
    return {}


def _problem(error: ErrorDetails, model: type[BaseModel]) -> Problem:
    field = dotted_path(error["loc"]) or WHOLE
    kind = error["type"]
    if kind in RULES:
        value = None if kind == TOLD_PRIVATE else shorten_value(error["input"])
        name = cast("str | None", error.get("ctx", {}).get(NAMED))
        return Problem(field, RULES[kind], _with_path(error, field), value, name=name)
    if kind == "extra_forbidden":
        *within, name = error["loc"]
        known = names_at(model, within)
        return unknown_argument(shorten(str(name)), known.names, dotted_path(known.path))
    rule, words = _WORDS.get(kind, ("value", _plain))
    if kind == "missing":
        return Problem(field, rule, f"{field} {words(error)}{_choices(model, field)}")
    value = shorten_value(error["input"])
    if kind == "string_too_short" and not _is_missing(error, fields_of(model).get(field)):
        rule, words = "range", _empty_or_short
    return Problem(field, rule, f"{field} {words(error)}", value)


def _choices(model: type[BaseModel], field: str) -> str:
    """The values that an argument may have, where there are few: whoever left it out chooses."""
    argument = fields_of(model).get(field)
    if argument is None or get_origin(argument.annotation) is not Literal:
        return ""
    return f": one of {', '.join(map(str, get_args(argument.annotation)))}"


def _is_missing(error: ErrorDetails, argument: FieldInfo | None) -> bool:
    """Whether a text is as good as none: empty where there must be one."""
    is_optional = argument is not None and not argument.is_required()
    return error.get("ctx", {})["min_length"] == 1 and not is_optional


def _empty_or_short(error: ErrorDetails) -> str:
    words = _too_short(error)
    return "must not be empty" if words == REQUIRED else words


def _with_path(error: ErrorDetails, field: str) -> str:
    """The validator's sentence; where it begins with the field's name, with the whole path."""
    leaf, message = str(error["loc"][-1]) if error["loc"] else WHOLE, error["msg"]
    return field + message.removeprefix(leaf) if message.startswith(f"{leaf} ") else message


def unknown_argument(name: str, names: list[str], within: str = "") -> Problem:
    """An argument that the tool, or an object within its arguments, does not have.

    It is told with the nearest that there is.
    """
    inside = f"{within}." if within else ""
    near = _with_part(name, names) or nearest(name, names)
    hint = f"Did you mean '{inside}{near}'?" if near else ""
    whose = f" of {within}" if within else ""
    none = f"{within} takes no others." if within else "This tool takes none."
    valid = f"Valid arguments{whose}: {', '.join(names)}." if names else none
    field = f"{inside}{name}"
    message = " ".join(part for part in (f"Unknown argument {field!r}.", hint, valid) if part)
    return Problem(field, "unknown", message, suggestion=hint or valid)


def _with_part(name: str, names: Iterable[str]) -> str | None:
    """The first name that this one is a word of: `version` of `expected_version`."""
    return next((one for one in names if name in one.split("_")), None)


def options_of(tool: AnyTool, argument: str) -> list[Any] | None:
    """The values that an argument may have, where its schema lists them."""
    schema: dict[str, Any] = tool.input_schema
    left, found = [schema["properties"].get(argument, {})], list[Any]()
    while left:
        one = left.pop()
        if "$ref" in one:
            one = schema["$defs"][one["$ref"].rpartition("/")[2]]
        if "anyOf" in one:
            left += one["anyOf"]
        elif "enum" in one or "const" in one:
            found += one.get("enum", [one.get("const")])
        elif one.get("type") != "null":
            return None
    return found


def nearest(name: str, names: Iterable[str], alike: float = 0.6) -> str | None:
    """The known name that is most like this one, if one is alike enough (1 is the same)."""
    near = difflib.get_close_matches(name[:MAX_NAME], names, n=1, cutoff=alike)
    return near[0] if near else None


def dotted_path(location: Iterable[int | str]) -> str:
    """Where a value stands, as `filters[0].field`."""
    path = ""
    for part in location:
        name = f"[{part}]" if isinstance(part, int) else shorten(part)
        path += f".{name}" if path and isinstance(part, str) else name
    return path


def shorten(text: str) -> str:
    """A text short enough to be told back."""
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "…"


def shorten_value(value: Any) -> Any:
    """A value short enough to be told back, and good text whatever it was."""
    if isinstance(value, str):
        return shorten(value).encode(errors="backslashreplace").decode()
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return None
    return value if isinstance(value, int | float | bool | None) else None


def _plain(error: ErrorDetails) -> str:
    message = error["msg"].removeprefix("Value error, ") or "it breaks a rule"
    return f"is not valid: {message[0].lower()}{message[1:]}"


def _context(key: str, words: str) -> Callable[[ErrorDetails], str]:
    return lambda error: words.format(error.get("ctx", {})[key])


def _too_short(error: ErrorDetails) -> str:
    least = error.get("ctx", {})["min_length"]
    return REQUIRED if least == 1 else f"must have at least {least} characters"


def _length(key: str, bound: str, unit: str) -> Callable[[ErrorDetails], str]:
    def words(error: ErrorDetails) -> str:
        length = error.get("ctx", {})[key]
        return f"must have {bound} {length} {unit}{'' if length == 1 else 's'}"

    return words


def _says(words: str) -> Callable[[ErrorDetails], str]:
    return lambda _: words


_WORDS: dict[str, tuple[str, Callable[[ErrorDetails], str]]] = {
    "missing": ("missing", _says(REQUIRED)),
    "extra_forbidden": ("unknown", _says("is not known here")),
    "string_type": ("type", _says("must be a string")),
    "int_type": ("type", _says("must be an integer")),
    "int_from_float": ("type", _says("must be an integer")),
    "float_type": ("type", _says("must be a number")),
    "bool_type": ("type", _says("must be true or false")),
    "dict_type": ("type", _says("must be an object")),
    "model_type": ("type", _says("must be an object")),
    "model_attributes_type": ("type", _says("must be an object")),
    "list_type": ("type", _says("must be a list")),
    "string_too_short": ("missing", _too_short),
    "string_too_long": ("range", _length("max_length", "at most", "character")),
    "greater_than_equal": ("range", _context("ge", "must be at least {}")),
    "less_than_equal": ("range", _context("le", "must be at most {}")),
    "greater_than": ("range", _context("gt", "must be greater than {}")),
    "less_than": ("range", _context("lt", "must be less than {}")),
    "too_long": ("range", _length("max_length", "at most", "item")),
    "too_short": ("range", _length("min_length", "at least", "item")),
    "literal_error": ("value", _context("expected", "must be one of: {}")),
    "enum": ("value", _context("expected", "must be one of: {}")),
}

"""Arguments that are kept as JSON."""

from typing import Annotated, Any

import orjson
from pydantic import AfterValidator, JsonValue, ValidationInfo

from toolgate.gate.errors import InvalidArguments, Problem, TooLarge

MAX_BYTES = 1024 * 1024


def size_of(field: str, value: Any) -> int:
    """How many bytes a value has as JSON; raises where it has no such form."""
    try:
        return len(orjson.dumps(value))
    except TypeError as problem:  # an integer over 64 bits, half of a surrogate pair
        message = f"{field} cannot be kept as JSON: {problem}"
        raise InvalidArguments([Problem(field, "value", message)]) from None


def _check(value: Any, info: ValidationInfo) -> Any:
    field = info.field_name or "arguments"
    size = size_of(field, value)
    if size > MAX_BYTES:
        raise TooLarge(
            f"{field} has {size} bytes as JSON; at most {MAX_BYTES} are stored. Send less."
        )
    return value


Json = Annotated[JsonValue, AfterValidator(_check)]
"""Any JSON that can be stored."""

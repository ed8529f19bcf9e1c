"""Types of arguments that several packs share."""

from typing import Annotated

from pydantic import BeforeValidator


def whole(value: object) -> object:
    """JSON has one kind of number: 20.0 is the integer 20."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(whole)]
"""A whole number, however JSON spells it."""

"""Types of arguments that several packs share."""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def plain_id(value: str) -> str:
    """An id as it is stored and compared: a UUID in lower case, any other as it stands."""
    return value.lower() if UUID.fullmatch(value) else value


def whole(value: object) -> object:
    """JSON has one kind of number: 20.0 is the integer 20."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(whole)]
"""A whole number, however JSON spells it."""


@dataclass(frozen=True, slots=True)
class Between:
    """The bounds of a `Whole` that is optional or has a name: `Annotated[int, Between(1, 9)]`.

    They belong on the integer itself. `Annotated[Whole, Field(ge=1)]` puts them behind the
    validator, and Pydantic lists them as `ge` and `le`, which no client knows.
    """

    least: int
    most: int

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        bounds = core_schema.int_schema(ge=self.least, le=self.most)
        return core_schema.no_info_before_validator_function(whole, bounds)

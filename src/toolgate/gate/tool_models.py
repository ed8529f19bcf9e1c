"""What the arguments and the answer of a tool are models of."""

from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from toolgate.gate.literals import exact_literals


class Input(BaseModel):
    """Arguments of a tool: exact types, no unknown names."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Pydantic's own, but for literals."""
        return exact_literals(handler(source), handler.resolve_ref_schema)


class Output(BaseModel):
    """An answer of a tool; what was not set is not sent."""

    model_config = ConfigDict(frozen=True)

    def body(self) -> dict[str, Any]:
        """The answer as it goes over the wire."""
        return self.__pydantic_serializer__.to_python(self, mode="json", exclude_unset=True)

    def body_without(self, field: str) -> dict[str, Any]:
        """The same without a field, which is handed over in another way."""
        serializer = self.__pydantic_serializer__
        return serializer.to_python(self, mode="json", exclude_unset=True, exclude={field})


class StoredOutput(Output):
    """An answer made with `model_construct` from what a store hands over in its shape already.

    Its model describes it; thousands of rows are neither checked again nor copied.
    """

    def body(self) -> dict[str, Any]:
        """The answer as it was made."""
        return vars(self)

    def body_without(self, field: str) -> dict[str, Any]:
        """The same without a field."""
        return {name: value for name, value in vars(self).items() if name != field}


class NoArguments(Input):
    """For tools without arguments."""

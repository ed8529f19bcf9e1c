"""A user's own tool as the gate knows it."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ValidationError

from toolgate.extend.context import handler_context
from toolgate.extend.declarations import Handler
from toolgate.extend.routes import OwnResult, validated_result
from toolgate.extend.schemas import SchemaCheck
from toolgate.extend.world import OwnWorld
from toolgate.gate.arguments import problem_of
from toolgate.gate.attachments import Attachment
from toolgate.gate.context import Context
from toolgate.gate.dialects import SENTENCE
from toolgate.gate.errors import RouteFailed
from toolgate.gate.offer import Site
from toolgate.gate.schemas import without
from toolgate.gate.tool import Effect, Pack, Tool

Schema = dict[str, Any]

OWN = Pack("own", SENTENCE, "Tools of your own.")


@dataclass(frozen=True, kw_only=True)
class OwnTool(Tool[Any, Any, Site]):
    """A tool whose schemas and hints are shown as the user wrote them."""

    reader: Callable[[dict[str, Any]], Any]
    declared_input: Schema
    declared_output: Schema
    """Empty where the user promised nothing."""
    hints: Mapping[str, Any]
    extra_fields: Mapping[str, Any]
    """Further fields of MCP, such as `icons`."""
    declared_attachment: str | None = None
    """The field of the answer that may be an attachment."""

    def read(self, arguments: dict[str, Any]) -> Any:
        """The arguments, checked against the user's schema or model."""
        return self.reader(arguments)

    def _find_attachment_field(self) -> str | None:
        return self.declared_attachment

    def attachment_of(self, answer: OwnResult) -> Attachment | None:
        """What an answer hands over in the field for it."""
        return answer.attachment

    @cached_property
    def input_schema(self) -> Schema:
        """JSON Schema of the arguments."""
        return self.declared_input

    @cached_property
    def output_schema(self) -> Schema:
        """JSON Schema of a good answer."""
        return self.declared_output

    @cached_property
    def linked_output_schema(self) -> Schema:
        """The same where an attachment is a link beside the answer."""
        declared, field = self.declared_output, self.attachment_field
        return declared if field is None else without(declared, field)

    @property
    def annotations(self) -> dict[str, Any]:
        """The user's hints; of the others only those that the effect makes certain.

        A client takes a missing hint for the cautious value, so none is guessed.
        """
        certain: dict[str, Any] = {"title": self.title}
        if self.effect is Effect.READ:
            certain["readOnlyHint"] = True
        elif self.effect is Effect.DESTROY:
            certain["destructiveHint"] = True
        return {**certain, **self.hints}

    @property
    def more_fields(self) -> Mapping[str, Any]:
        """What a listing over MCP has besides."""
        return self.extra_fields


@dataclass(frozen=True, slots=True)
class HandlerCall:
    """Runs a user's own function."""

    tool: str
    handler: Handler
    model: type[BaseModel] | None
    check: SchemaCheck | None
    attachment_field: str | None = None
    """The field of the model that is an attachment."""

    async def __call__(self, ctx: Context[OwnWorld], args: Any) -> OwnResult:
        """Ask the function."""
        value = await self.handler(handler_context(ctx, self.tool), args)
        if self.model is not None and not isinstance(value, self.model):
            value = self._validate(value, self.model)
        field = self.attachment_field
        attachment = getattr(value, field) if field else None
        if isinstance(value, BaseModel):
            exclude = {field} if field and attachment else None
            value = value.__pydantic_serializer__.to_python(value, mode="json", exclude=exclude)
        return OwnResult(validated_result(self.tool, value, self.check), attachment)

    def _validate(self, value: Any, model: type[BaseModel]) -> BaseModel:
        try:
            return model.model_validate(value)
        except ValidationError as invalid:
            message = f"{self.tool} answered what {model.__name__} does not allow"
            raise RouteFailed(f"{message}: {problem_of(invalid)}.") from invalid


def takes_context_and_arguments(handler: Handler) -> bool:
    """Whether a function can be called as `await handler(ctx, args)`."""
    if not inspect.iscoroutinefunction(handler):
        return False
    try:
        inspect.signature(handler).bind(None, None)
    except TypeError:
        return False
    return True

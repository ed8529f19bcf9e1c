"""Scope: ids in the arguments, against the ids that the caller is bound to.

A field of an Input that is such an id says so in its annotation:

    task_id: Annotated[str, Scoped("task")]

Which fields these are is found when the tool is declared. A call with another id than the caller's
own is answered with the tool's own not-found, before its handler looks for anything: so it takes
the same time whether somebody else has a record of that id or nobody. An id that may be left out
is then the caller's own. A caller that is bound to no id of a kind may name any.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel

from toolgate.gate.annotations import is_optional, types_within
from toolgate.gate.errors import GateError, NotFound, printable
from toolgate.gate.principal import Principal

KINDS = ("project", "task", "run", "job", "user", "node")
AUDITED = frozenset(KINDS) - {"user", "node"}
"""Kinds that an audit row has a column for; its user is the caller's, a node calls itself."""
OUT_OF_SCOPE = "out-of-scope"
"""The rule of a call that names an id the caller is not bound to."""

MakeNotFound = Callable[[Any], GateError]


class BadScope(TypeError):
    """A tool's scope ids are declared in a way that could not be enforced."""


@dataclasses.dataclass(frozen=True, slots=True)
class Scoped:
    """Marks a field as an id of this kind."""

    kind: str

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise BadScope(f"There is no scope {self.kind!r}. Scopes: {', '.join(KINDS)}.")


@dataclasses.dataclass(frozen=True, slots=True)
class Scope:
    """The scope ids among a tool's arguments."""

    fields: Mapping[str, str]
    """The kind of each."""
    not_found: MakeNotFound
    """What the tool raises for an id that does not exist."""

    def only(self, principal: Principal) -> dict[str, str]:
        """The fields that only one id is good for, when this caller asks, and that id."""
        bound = principal.scope
        return {name: bound[kind] for name, kind in self.fields.items() if kind in bound}

    def narrow(self, args: Any, principal: Principal) -> Any:
        """The arguments, with the caller's own ids where some were left out.

        Raises the tool's own not-found when they name an id that is not the caller's.
        """
        own: dict[str, str] = {}
        for name, bound in self.only(principal).items():
            value = getattr(args, name)
            if value is None:
                own[name] = bound
            elif value != bound:
                error = self.not_found(args)
                error.rule = OUT_OF_SCOPE
                raise error
        return args.model_copy(update=own) if own else args

    def audit_ids(self, args: Any) -> dict[str, str]:
        """The ids as the columns of an audit row; of two of a kind, the first."""
        ids: dict[str, str] = {}
        for name, kind in self.fields.items():
            value = getattr(args, name)
            if value is not None and kind in AUDITED:
                ids.setdefault(f"{kind}_id", printable(value))
        return ids


def scope_of(
    tool: str, model: type[BaseModel], not_found: str | MakeNotFound | None
) -> Scope | None:
    """The scope of a tool, or None where no argument is a scope id; raises `BadScope`."""
    fields = _scoped_fields(tool, model)
    if bool(fields) != (not_found is not None):
        raise BadScope(
            f"{tool} has scope ids ({', '.join(fields)}): say what it raises for an id that does "
            'not exist (`not_found="Task not found"`).'
            if fields
            else f"{tool} says `not_found`, but no field of {model.__name__} is Scoped."
        )
    if not_found is None:
        return None
    if isinstance(not_found, str):
        words = not_found
        return Scope(fields, lambda _: NotFound(words))
    return Scope(fields, not_found)


def has_scope_ids(model: type[BaseModel]) -> bool:
    """Whether a field of the model, or of one inside it, is marked."""
    return bool(_marks(model))


def _scoped_fields(tool: str, model: type[BaseModel]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for name, field in model.model_fields.items():
        annotated: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else None
        annotation = annotated or field.annotation
        marks = _marks(annotation)
        if not marks:
            continue
        if len(marks) > 1 or not is_optional(annotation, str):
            raise BadScope(
                f"{tool}: {name} cannot be checked as a scope id. Scoped is for a field of the "
                "Input itself that is `str` or `str | None`, not for lists or models inside it."
            )
        fields[name] = marks[0].kind
    return fields


def _marks(annotation: Any) -> list[Scoped]:
    return [one for one in types_within(annotation) if isinstance(one, Scoped)]

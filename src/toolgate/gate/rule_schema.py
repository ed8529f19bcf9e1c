"""What a rule can look at: attributes of the caller, of the tool, and the switches.

Entities, the keys of remembered decisions, the Cedar schema that rules are checked against, and
the reference page are all made from the attributes, so one is there in all of them or in none.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from toolgate.gate.attributes import Attribute
from toolgate.gate.catalogue import AnyTool
from toolgate.gate.principal import OF_PRINCIPAL, Principal
from toolgate.gate.tool import OF_TOOL
from toolgate.sections import Settings
from toolgate.setting_types import Section

PRINCIPAL, TOOL, CALLER = "Principal", "Tool", "caller"
"""The entity types, and the one id of every caller: a rule sees its kind, not the single one."""
ACTIONS = {
    "see": "whether the tool exists for the caller",
    "call": "whether the caller may call it now",
}


@dataclass(frozen=True, slots=True)
class Switch:
    """A setting that rules may look at."""

    value: bool | frozenset[str]
    meaning: str


Switches = Mapping[str, Switch]


def switches_of(settings: Settings) -> dict[str, Switch]:
    """The settings that rules may look at, by the name they have in `context`."""
    found: dict[str, Switch] = {}
    for name in type(settings).model_fields:
        section = getattr(settings, name)
        if isinstance(section, Section):
            for switch, key in section.switches.items():
                value = getattr(section, key)
                also = [one for one, of in section.borrowed.items() if of == key]
                meaning = ", or ".join([f"setting `{name}.{key}`", *also])
                value = value if isinstance(value, bool) else frozenset(value)
                found[switch] = Switch(value, meaning)
    return found


KnownValues = Mapping[tuple[str, str], Iterable[str]]
"""The values that there are, by variable and attribute."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The words a rule may use."""

    variables: Mapping[str, Mapping[str, Attribute[Any]]]
    """The attributes by the variable that a rule reads them from."""
    values: KnownValues
    elsewhere: Callable[[str], str | None] = field(default=lambda _: None, compare=False)
    """What to say of a tool that there would be with other settings."""

    @property
    def sets(self) -> set[str]:
        """The attributes that are sets, as a rule names them."""
        return {
            f"{variable}.{name}"
            for variable, attributes in self.variables.items()
            for name, one in attributes.items()
            if one.type.startswith("Set<")
        }

    def schema(self) -> str:
        """The same as a Cedar schema."""
        actions = ", ".join(ACTIONS)
        return (
            f"entity {PRINCIPAL} {_record(OF_PRINCIPAL)};\n\n"
            f"entity {TOOL} {_record(OF_TOOL)};\n\n"
            f"action {actions} appliesTo {{\n"
            f"  principal: {PRINCIPAL},\n  resource: {TOOL},\n"
            f"  context: {_record(self.variables['context'], '  ')}\n}};\n"
        )


def vocabulary(switches: Switches) -> Vocabulary:
    """What rules may look at where these switches exist."""
    variables: dict[str, Mapping[str, Attribute[Any]]] = {
        "principal": OF_PRINCIPAL,
        "resource": OF_TOOL,
        "context": {name: _of_context(name, one) for name, one in switches.items()},
    }
    values = {
        (variable, name): attribute.values
        for variable, attributes in variables.items()
        for name, attribute in attributes.items()
        if attribute.values
    }
    return Vocabulary(variables, values)


def _of_context(name: str, switch: Switch) -> Attribute[Switches]:
    kind = "Bool" if isinstance(switch.value, bool) else "Set<String>"
    return Attribute(kind, lambda on: on[name].value, switch.meaning)


def _record(attributes: Mapping[str, Attribute[Any]], indent: str = "") -> str:
    lines = [f"{indent}  {name}: {one.type}," for name, one in attributes.items()]
    return "\n".join(["{", *lines, f"{indent}}}"])


def entities(principal: Principal, tool: AnyTool) -> Sequence[dict[str, Any]]:
    """The caller and the tool as Cedar wants them."""
    return [
        _entity(PRINCIPAL, CALLER, OF_PRINCIPAL, principal.shape),
        _entity(TOOL, tool.name, OF_TOOL, tool.shape),
    ]


def context(switches: Switches) -> dict[str, Any]:
    """The switches as Cedar wants them."""
    return {
        name: one.value if isinstance(one.value, bool) else sorted(one.value)
        for name, one in switches.items()
    }


def _entity(type_: str, id_: str, names: Iterable[str], values: tuple[Any, ...]) -> dict[str, Any]:
    attributes = dict(zip(names, values, strict=True))
    return {"uid": {"type": type_, "id": id_}, "attrs": attributes, "parents": []}

"""May this caller use this tool? Cedar decides; the rule that decided is named.

Two questions are asked: may the caller *see* the tool (otherwise it does not exist for it),
and may it *call* the tool now.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import cedarpy

from toolgate.gate.catalogue import AnyTool
from toolgate.gate.principal import Principal

NO_RULE = "no-rule-permits"
POLICY_ERROR = "policy-error"
MOST_CACHED = 20_000


class BadPolicy(ValueError):
    """A rule file cannot be read; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer, and the rule it rests on."""

    visible: bool
    allowed: bool
    rule: str
    says: str | None = None
    """What the caller is told when a rule forbids."""


@dataclass(frozen=True, slots=True)
class Switches:
    """The settings that rules may look at."""

    appdata_writes: bool = False
    read_only: bool = False
    pm_adds_images: bool = False
    disabled: frozenset[str] = frozenset()


class Policy:
    """The rules, parsed once; decisions are remembered per shape of caller and tool."""

    def __init__(self, sources: Mapping[str, str], switches: Switches) -> None:
        self._rules = _parse(sources)
        self._annotations = _annotations(self._rules)
        self._context = {
            "appdata_writes": switches.appdata_writes,
            "read_only": switches.read_only,
            "pm_adds_images": switches.pm_adds_images,
            "disabled": sorted(switches.disabled),
        }
        self._known: dict[tuple[Any, ...], Decision] = {}

    def decide(self, principal: Principal, tool: AnyTool) -> Decision:
        """The decision for this caller and this tool."""
        key = (principal.shape, tool.shape)
        known = self._known.get(key)
        if known is None:
            if len(self._known) >= MOST_CACHED:
                self._known.clear()
            known = self._known[key] = self._ask(principal, tool)
        return known

    def visible(self, principal: Principal, tools: Iterable[AnyTool]) -> list[AnyTool]:
        """The tools that exist for this caller."""
        return [tool for tool in tools if self.decide(principal, tool).visible]

    def _ask(self, principal: Principal, tool: AnyTool) -> Decision:
        entities = [_principal_entity(principal), _tool_entity(tool)]
        may_see, rule, _ = self._evaluate("see", tool, entities)
        if not may_see:
            return Decision(visible=False, allowed=False, rule=rule)
        may_call, rule, says = self._evaluate("call", tool, entities)
        return Decision(visible=True, allowed=may_call, rule=rule, says=says)

    def _evaluate(
        self, action: str, tool: AnyTool, entities: list[dict[str, Any]]
    ) -> tuple[bool, str, str | None]:
        request = {
            "principal": {"type": "Principal", "id": "caller"},
            "action": {"type": "Action", "id": action},
            "resource": {"type": "Tool", "id": tool.name},
            "context": self._context,
        }
        result = cedarpy.is_authorized(request, self._rules, entities)  # pyright: ignore[reportUnknownMemberType]
        if result.diagnostics.errors:
            return False, POLICY_ERROR, None
        reasons = sorted(result.diagnostics.reasons)
        if not reasons:
            return False, NO_RULE, None
        told = self._annotations.get(reasons[0], {})
        return result.allowed, told.get("id", reasons[0]), told.get("says")


def built_in_rules() -> dict[str, str]:
    """The rules that ship with toolgate, by file name."""
    folder = resources.files("toolgate.policies")
    return {
        file.name: file.read_text(encoding="utf-8")
        for file in sorted(folder.iterdir(), key=lambda one: one.name)
        if file.name.endswith(".cedar")
    }


def rules_in(folder: Path) -> dict[str, str]:
    """An operator's own rules: every .cedar file of a folder."""
    if not folder.is_dir():
        raise BadPolicy(f"{folder} is not a folder (setting policy.folder).")
    # Whole paths, so that no file takes the place of a built-in one.
    return {str(file): _text(file) for file in sorted(folder.resolve().glob("*.cedar"))}


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise BadPolicy(f"{file}: {problem}") from problem


def _parse(sources: Mapping[str, str]) -> cedarpy.PolicySet:
    for name, text in sources.items():
        try:
            cedarpy.PolicySet.from_str(text)
        except ValueError as problem:
            raise BadPolicy(f"{name}: {problem}") from problem
    return cedarpy.PolicySet.from_str("\n".join(sources.values()))


def _annotations(rules: cedarpy.PolicySet) -> dict[str, dict[str, str]]:
    parsed = json.loads(cedarpy.policies_to_json_str(str(rules)))
    return {name: rule.get("annotations", {}) for name, rule in parsed["staticPolicies"].items()}


def _principal_entity(principal: Principal) -> dict[str, Any]:
    return {
        "uid": {"type": "Principal", "id": "caller"},
        "attrs": {
            "kind": principal.kind.value,
            "roles": sorted(role.value for role in principal.roles),
            "agent_type": principal.agent_type.value if principal.agent_type else "",
        },
        "parents": [],
    }


def _tool_entity(tool: AnyTool) -> dict[str, Any]:
    return {
        "uid": {"type": "Tool", "id": tool.name},
        "attrs": {
            "name": tool.name,
            "namespace": tool.namespace,
            "pack": tool.pack.name,
            "family": tool.family,
            "role": tool.role.value,
            "effect": tool.effect.value,
            "open_world": tool.open_world,
        },
        "parents": [],
    }

"""May this caller use this tool? Cedar decides; the rule that decided is named.

Two questions are asked: may the caller *see* the tool (otherwise it does not exist for it),
and may it *call* the tool now.
"""

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import cedarpy
import orjson

from toolgate.gate.catalogue import AnyTool
from toolgate.gate.principal import Principal
from toolgate.gate.rule_schema import (
    CALLER,
    PRINCIPAL,
    TOOL,
    Switches,
    context,
    entities,
    vocabulary,
)
from toolgate.gate.rules import Rule, check, evaluated_form

logger = logging.getLogger(__name__)

NO_RULE = "no-rule-permits"
POLICY_ERROR = "policy-error"
SWITCHED_OFF = "tool-switched-off"
MAX_CACHED = 20_000
CEDARS_NAME = re.compile(r"`policy(\d+)`")


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer, and the rule it rests on."""

    visible: bool
    allowed: bool
    rule: str
    message: str | None = None
    """What the caller is told when a rule forbids a tool that it sees."""
    off: bool = False
    """Whether it is hidden only because an operator switched it off while servers run."""


class Policy:
    """The rules, checked and parsed once; decisions are remembered per shape of caller and tool."""

    def __init__(self, rules: Sequence[Rule], switches: Switches) -> None:
        self._each = rules
        self.vocabulary = vocabulary(switches)
        check(self._each, self.vocabulary)
        forms = {f"policy{at}": evaluated_form(rule) for at, rule in enumerate(self._each)}
        every: dict[str, Any] = {"staticPolicies": forms, "templates": {}, "templateLinks": []}
        self._rules = cedarpy.PolicySet.from_json_str(orjson.dumps(every).decode())
        self._annotations = {
            f"policy{at}": {"id": rule.name, **forms[f"policy{at}"].get("annotations", {})}
            for at, rule in enumerate(self._each)
        }
        self._switches = switches
        self._context = self._fixed = context(switches)
        """What rules find in `context`: with the live switches, and without."""
        self._decisions: dict[tuple[Any, ...], Decision] = {}
        self.failures: dict[str, None] = {}
        """Rules that failed while they were evaluated, and why; each is logged once."""

    def disable(self, names: frozenset[str]) -> None:
        """Switch these tools and packs off, beside those of the settings, and no others."""
        fixed = self._switches["disabled"]
        assert isinstance(fixed.value, frozenset)
        every = replace(fixed, value=fixed.value | names)
        self._context = context({**self._switches, "disabled": every})
        self._decisions.clear()

    def decide(self, principal: Principal, tool: AnyTool) -> Decision:
        """The decision for this caller and this tool."""
        key = (principal.shape, tool.shape)
        decision = self._decisions.get(key)
        if decision is None:
            if len(self._decisions) >= MAX_CACHED:
                self._decisions.clear()
            decision = self._decisions[key] = self._ask(principal, tool)
        return decision

    def visible(self, principal: Principal, tools: Iterable[AnyTool]) -> list[AnyTool]:
        """The tools that exist for this caller."""
        return [tool for tool in tools if self.decide(principal, tool).visible]

    def _ask(self, principal: Principal, tool: AnyTool) -> Decision:
        both = entities(principal, tool)
        may_see, rule, says = self._evaluate("see", tool, both, self._context)
        if not may_see:
            # What the settings switch off exists for nobody; a live switch is no secret.
            live = self._context is not self._fixed
            off = live and self._evaluate("see", tool, both, self._fixed)[0]
            return Decision(visible=False, allowed=False, rule=rule, message=says, off=off)
        may_call, rule, says = self._evaluate("call", tool, both, self._context)
        return Decision(visible=True, allowed=may_call, rule=rule, message=says)

    def _evaluate(
        self,
        action: str,
        tool: AnyTool,
        both: Sequence[dict[str, Any]],
        switches: Mapping[str, Any],
    ) -> tuple[bool, str, str | None]:
        request = {
            "principal": {"type": PRINCIPAL, "id": CALLER},
            "action": {"type": "Action", "id": action},
            "resource": {"type": TOOL, "id": tool.name},
            "context": switches,
        }
        result = cedarpy.is_authorized(request, self._rules, list(both))  # pyright: ignore[reportUnknownMemberType]
        if errors := result.diagnostics.errors:
            # Without the rule that failed, the others' answer may be more than was meant.
            self._note(errors)
            return False, POLICY_ERROR, None
        reasons = sorted(result.diagnostics.reasons)
        if not reasons:
            return False, NO_RULE, None
        annotations = self._annotations[reasons[0]]
        return result.allowed, annotations["id"], annotations.get("says")

    def _note(self, errors: Iterable[str]) -> None:
        for error in errors:
            failure = CEDARS_NAME.sub(self._where, error)
            if failure not in self.failures:
                self.failures[failure] = None
                logger.error("Tools are hidden because a rule failed: %s.", failure)

    def _where(self, name: re.Match[str]) -> str:
        return self._each[int(name[1])].place()

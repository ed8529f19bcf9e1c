"""Rule files: read, taken apart into single rules, and checked before anything relies on them.

A rule with a misspelled attribute fails whenever it is evaluated, and then everybody is denied.
So every rule is checked against the schema at start, and a problem names file, line and rule.
"""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, cast

import cedarpy

from toolgate.gate.rule_schema import ACTIONS, CALLER, PRINCIPAL, TOOL, VARIABLES, schema

MOST_TOLD = 5
ENDS_OR_HIDES = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|;', re.DOTALL)
"""The semicolon that ends a rule, and the two places where one does not: texts and comments."""
NOTHING = re.compile(r"(?:\s|//[^\n]*(?:\n|$))*")
UNKNOWN_ATTRIBUTE = re.compile(r"attribute `([^`]+)` (?:on entity type `(\w+)`|in context)")
UNKNOWN_ACTION = re.compile(r'unrecognized action `Action::"([^"]*)"`')
UNKNOWN_TYPE = re.compile(r"unrecognized entity type `([^`]+)`")
FOLLOWS = "unable to find an applicable action"
"""Said besides the reason, whenever an action or type is unknown."""
VARIABLE_OF = {PRINCIPAL: "principal", TOOL: "resource", None: "context"}
COMPARING = ("==", "!=", "contains", "containsAny", "containsAll")


class BadPolicy(ValueError):
    """Rules cannot be used; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule as its author wrote it."""

    file: str
    line: int
    text: str

    def place(self, word: str | None = None) -> str:
        """Where it is, or where a word of it is."""
        found = re.search(word, self.text) if word else None
        before = self.text[: found.start()].count("\n") if found else 0
        return f"{self.file}, line {self.line + before}"


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
        raise BadPolicy(f"{file}: {problem}.") from problem


def rules_of(sources: Mapping[str, str]) -> list[Rule]:
    """Every single rule of the files, in order: Cedar calls them policy0, policy1 and so on."""
    return [rule for file, text in sources.items() for rule in _split(file, text)]


def _split(file: str, text: str) -> Iterator[Rule]:
    start = 0
    ends = [one.end() for one in ENDS_OR_HIDES.finditer(text) if one[0] == ";"]
    for end in (*ends, len(text)):
        if blank := NOTHING.match(text, start):
            start = min(blank.end(), end)
        if start < end:
            yield Rule(file, text.count("\n", 0, start) + 1, text[start:end])
        start = end


def check(rules: Iterable[Rule]) -> None:
    """Raise unless every rule can be read, names what there is, and can ever apply."""
    known = cedarpy.Schema.from_str(schema())
    problems = [problem for rule in rules for problem in _problems(rule, known)]
    if problems:
        more = len(problems) - MOST_TOLD
        rest = [f"And {more} more."] if more > 0 else []
        raise BadPolicy(" ".join([*problems[:MOST_TOLD], *rest]))


def _problems(rule: Rule, known: cedarpy.Schema) -> list[str]:
    try:
        parsed = json.loads(cedarpy.policies_to_json_str(rule.text))
    except ValueError as problem:
        return [f"{rule.place()}: {problem}."]
    if parsed["templates"]:
        return [f"{rule.place()}: a rule cannot be a template (?principal, ?resource)."]
    result = cedarpy.validate_policies(rule.text, known)  # pyright: ignore[reportUnknownMemberType]
    found = sorted(one.error for one in result.errors)
    reasons = [one for one in found if FOLLOWS not in one] or found
    (tree,) = parsed["staticPolicies"].values()
    told = [*(_worded(rule, one) for one in reasons), *_never_true(rule, tree)]
    return list(dict.fromkeys(told))


def _worded(rule: Rule, error: str) -> str:
    """Cedar's words, with the line and the nearest name there is."""
    if unknown := UNKNOWN_ATTRIBUTE.search(error):
        return _no_attribute(rule, VARIABLE_OF[unknown[2]], unknown[1])
    if unknown := UNKNOWN_ACTION.search(error):
        near = _nearest(unknown[1], ACTIONS)
        place = rule.place(re.escape(f'"{unknown[1]}"'))
        return f'{place}: there is no action "{unknown[1]}". {near}'
    if unknown := UNKNOWN_TYPE.search(error):
        near = _nearest(unknown[1], (PRINCIPAL, TOOL))
        place = rule.place(rf"\b{unknown[1]}\b")
        return f"{place}: there is no entity type {unknown[1]}. {near}"
    why = re.sub(r"^for policy `[^`]*`, ", "", error).rstrip(".")
    return f"{rule.place()}: {why}."


def _no_attribute(rule: Rule, variable: str, name: str) -> str:
    place = rule.place(rf'(?:\.\s*|has\s+|\["?){re.escape(name)}\b')
    near = _nearest(name, VARIABLES[variable])
    return f"{place}: {variable} has no attribute {name}. {near}"


def _nearest(name: str, known: Iterable[str]) -> str:
    names = [one for one in known if one]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"Did you mean {near[0]}?" if near else f"There is: {', '.join(names)}."


def _never_true(rule: Rule, tree: Any) -> Iterator[str]:
    """What Cedar accepts although it can never hold: a typo there would go unnoticed."""
    for name, node in _nodes(tree):
        match name, node:
            case "has", {"left": {"Var": variable}, "attr": attribute}:
                if attribute not in VARIABLES[variable]:
                    yield _no_attribute(rule, variable, attribute)
            case "entity" | "__entity", {"type": "Principal", "id": id_}:
                if id_ != CALLER:
                    yield f"{rule.place()}: a rule cannot name a single caller ({id_})."
            case _ if name in COMPARING:
                yield from _unknown_values(rule, node["left"], node["right"])
                yield from _unknown_values(rule, node["right"], node["left"])
            case _:
                pass


def _unknown_values(rule: Rule, attribute: Any, values: Any) -> Iterator[str]:
    match attribute:
        case {".": {"left": {"Var": variable}, "attr": name}} if name in VARIABLES[variable]:
            known = VARIABLES[variable][name].values
        case _:
            return
    for value in (one.get("Value") for one in values.get("Set", [values])):
        if known and isinstance(value, str) and value not in known:
            place = rule.place(re.escape(f'"{value}"'))
            near = _nearest(value, known)
            yield f'{place}: {variable}.{name} is never "{value}". {near}'


def _nodes(tree: Any) -> Iterator[tuple[str, Any]]:
    """Every named part of a rule, from the outside in."""
    if isinstance(tree, list):
        for one in cast("list[Any]", tree):
            yield from _nodes(one)
    elif isinstance(tree, dict):
        for name, one in cast("dict[str, Any]", tree).items():
            yield name, one
            yield from _nodes(one)

"""Rule files: read, taken apart into single rules, and checked before anything relies on them.

A rule with a misspelled attribute fails whenever it is evaluated, and then everybody is denied; a
`forbid` with a misspelled tool forbids nothing. So every rule is checked at start against the
schema and the tools there are, and a problem names file, line and rule.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any, cast

import cedarpy
import orjson

from toolgate.gate.catalogue import AnyTool
from toolgate.gate.offer import AnyOffer
from toolgate.gate.rule_messages import KINDS, nearest, reword
from toolgate.gate.rule_schema import (
    ACTIONS,
    CALLER,
    PRINCIPAL,
    TOOL,
    Vocabulary,
)
from toolgate.gate.tool import OF_TOOL

TESTS = ".test.toml"
"""How the names of files end that `toolgate policy test` reads."""
NOTES = (".md", ".rst")
"""Files that are for people, beside the rules."""
MAX_TOLD = 5
MAX_CODE, MAX_DEEP = 10_000, 100
"""Characters of one rule besides its texts and comments, and brackets within brackets: Cedar ends
the whole process on rules that are far longer or deeper."""
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


ANNOTATIONS = {"id": '@id("no-queries")', "says": '@says("Ask for one document.")'}
OF_THE_GATE = (
    "access-rule:",
    "content-policy",
    "counters-unavailable",
    "credentials-required",
    "guess-limit",
    "invalid-arguments",
    "no-access-rule-allows",
    "no-dry-run",
    "no-rule-",
    "oauth-",
    "out-of-scope",
    "policy-error",
    "scope-required",
    "tool-refused",
    "unreadable",
)
"""How the names begin that audit rows have for decisions without a rule of Cedar's."""


class BadPolicy(ValueError):
    """Rules cannot be used; the message says which and why."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule as its author wrote it."""

    file: str
    line: int
    text: str
    pack: str | None = None
    """The pack that brings it; it then applies to tools of that pack alone."""

    @property
    def name(self) -> str:
        """What it is called where it has no @id."""
        return f"{Path(self.file).name}:{self.line}"

    def place(self, word: str | None = None) -> str:
        """Where it is, or where a word of it is."""
        match = re.search(word, self.text) if word else None
        before = self.text[: match.start()].count("\n") if match else 0
        return f"{self.file}, line {self.line + before}"


def built_in_rules() -> dict[str, str]:
    """The gate's own rules, by file name."""
    folder = resources.files("toolgate.policies")
    return {
        file.name: file.read_text(encoding="utf-8")
        for file in sorted(folder.iterdir(), key=lambda one: one.name)
        if file.name.endswith(".cedar")
    }


def shipped_rules(offers: Iterable[AnyOffer]) -> dict[str, str]:
    """The gate's rules and those that packs bring, by the name of their file."""
    return built_in_rules() | {
        f"{offer.pack.name}/rules.cedar": offer.rules for offer in offers if offer.rules
    }


def pack_rules(offer: AnyOffer) -> list[Rule]:
    """The single rules that a pack brings, each confined to it."""
    rules = rules_of({f"{offer.pack.name}/rules.cedar": offer.rules or ""})
    return [replace(rule, pack=offer.pack.name) for rule in rules]


def rules_in(folder: Path) -> dict[str, str]:
    """An operator's own rules: every .cedar file of a folder."""
    if not folder.is_dir():
        raise BadPolicy(f"{folder} is not a folder (setting policy.folder).")
    # Whole paths, so that no file takes the place of a built-in one.
    files = sorted(one for one in folder.resolve().iterdir() if _is_rule_file(one))
    return {str(file): _text(file) for file in files}


def skipped_in(folder: Path) -> list[Path]:
    """Files that may be meant as rules but are not read: other endings, and those in subfolders."""
    whole = folder.resolve()
    deeper = [one for one in whole.glob("*/*") if not one.parent.name.startswith(".")]
    deeper = [one for one in deeper if _is_rule_file(one)]
    return sorted([*(one for one in whole.iterdir() if _is_skipped(one)), *deeper])


def _is_skipped(path: Path) -> bool:
    name = path.name.lower()
    if ".cedar." in name:
        return True
    expected = _is_rule_file(path) or name.endswith(TESTS) or path.suffix.lower() in NOTES
    return not (expected or name.startswith(".") or path.is_dir())


def _is_rule_file(path: Path) -> bool:
    return path.suffix.lower() == ".cedar" and not path.is_dir()


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise BadPolicy(f"{file}: {problem}.") from problem


def rules_of(sources: Mapping[str, str]) -> list[Rule]:
    """Every single rule of the files, in order."""
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


def evaluated_form(rule: Rule) -> dict[str, Any]:
    """The rule as Cedar evaluates it, in Cedar's JSON.

    The pack of a pack's rule is compared first, so that it cannot even fail for other tools.
    """
    tree = _tree(rule)
    if rule.pack is not None:
        attribute = {".": {"left": {"Var": "resource"}, "attr": "pack"}}
        same = {"==": {"left": attribute, "right": {"Value": rule.pack}}}
        tree["conditions"] = [{"kind": "when", "body": same}, *tree["conditions"]]
    return tree


def check(rules: Iterable[Rule], words: Vocabulary) -> None:
    """Raise unless every rule can be read, has a name of its own, and can ever apply."""
    schema = cedarpy.Schema.from_str(words.schema())
    ids: dict[str, Rule] = {}
    refuse([problem for rule in rules for problem in _problems(rule, words, schema, ids)])


def refuse(problems: Sequence[str]) -> None:
    """Raise where there are problems; the first few are told."""
    if problems:
        more = len(problems) - MAX_TOLD
        rest = [f"And {more} more."] if more > 0 else []
        raise BadPolicy(" ".join([*problems[:MAX_TOLD], *rest]))


def unknown_names(rules: Iterable[Rule], words: Vocabulary, tools: Iterable[AnyTool]) -> list[str]:
    """Where checked rules name a tool, pack, family or namespace that no tool has."""
    every = list(tools)
    values = {
        ("resource", name): sorted({attribute.value(tool) for tool in every})
        for name, attribute in OF_TOOL.items()
        if attribute.type == "String" and not attribute.values
    }
    words = replace(words, values=values)
    problems = [problem for rule in rules for problem in _never_true(rule, _tree(rule), words)]
    return list(dict.fromkeys(problems))


def _problems(
    rule: Rule, words: Vocabulary, schema: cedarpy.Schema, ids: dict[str, Rule]
) -> list[str]:
    if _is_too_large(rule.text):
        return [_too_large(rule)]
    try:
        tree = _tree(rule)
    except orjson.JSONDecodeError:
        return [_too_large(rule)]
    except ValueError as problem:
        return [_worded_error(rule, words, str(problem))]
    result = cedarpy.validate_policies(rule.text, schema)  # pyright: ignore[reportUnknownMemberType]
    errors = sorted(one.error for one in result.errors)
    reasons = [one for one in errors if FOLLOWS not in one] or errors
    problems = [
        *(_worded_error(rule, words, one) for one in reasons),
        *_never_true(rule, tree, words),
    ]
    annotations: dict[str, str | None] = tree.get("annotations", {})
    problems += _annotation_problems(rule, annotations)
    id_ = annotations.get("id")
    if id_ is not None and (first := ids.setdefault(id_, rule)) is not rule:
        problems.append(
            f'{rule.place()}: @id("{id_}") is taken by {first.place()}. Choose another.'
        )
    return list(dict.fromkeys(problems))


def _annotation_problems(rule: Rule, annotations: Mapping[str, str | None]) -> Iterator[str]:
    for name, value in annotations.items():
        place = rule.place(rf"@\s*{name}\b")
        if name not in ANNOTATIONS:
            yield f"{place}: there is no annotation @{name}. {nearest(name, ANNOTATIONS)}"
        elif not value:
            yield f"{place}: @{name} needs a text, such as {ANNOTATIONS[name]}."
        elif name == "id" and value.startswith(OF_THE_GATE):
            taken = "is what the gate itself calls a decision"
            yield f'{place}: @id("{value}") {taken}. Choose another.'


def _is_too_large(text: str) -> bool:
    code = re.sub(r"\s", "", ENDS_OR_HIDES.sub("", text))
    deep = deepest = 0
    for one in code:
        deep += (one in "([{") - (one in ")]}")
        deepest = max(deepest, deep)
    return len(code) > MAX_CODE or deepest > MAX_DEEP


def _too_large(rule: Rule) -> str:
    step = 'Make several rules of it, or compare with a set: ["a", "b"].contains(…).'
    return f"{rule.place()}: the rule is too long or too deeply nested. {step}"


def _tree(rule: Rule) -> dict[str, Any]:
    """The rule as Cedar reads it; orjson, because its limit of depth is the same everywhere."""
    parsed = orjson.loads(cedarpy.policies_to_json_str(rule.text))
    if parsed["templates"]:
        raise BadPolicy("a rule cannot be a template (?principal, ?resource)")
    (tree,) = parsed["staticPolicies"].values()
    return tree


def _worded_error(rule: Rule, words: Vocabulary, error: str) -> str:
    """Cedar's error, with the line and the nearest name there is."""
    if unknown := UNKNOWN_ATTRIBUTE.search(error):
        return _no_attribute(rule, words, VARIABLE_OF[unknown[2]], unknown[1])
    if unknown := UNKNOWN_ACTION.search(error):
        near = nearest(unknown[1], ACTIONS)
        place = rule.place(re.escape(f'"{unknown[1]}"'))
        return f'{place}: there is no action "{unknown[1]}". {near}'
    if unknown := UNKNOWN_TYPE.search(error):
        near = nearest(unknown[1], (PRINCIPAL, TOOL))
        place = rule.place(rf"\b{unknown[1]}\b")
        return f"{place}: there is no entity type {unknown[1]}. {near}"
    why = re.sub(r"^for policy `[^`]*`, ", "", error).rstrip(".")
    word, sentence = reword(why, rule.text, words) or (None, f"{why}.")
    return f"{rule.place(word)}: {sentence}"


def _no_attribute(rule: Rule, words: Vocabulary, variable: str, name: str) -> str:
    place = rule.place(rf'(?:\.\s*|has\s+|\["?){re.escape(name)}\b')
    near = nearest(name, words.variables[variable])
    return f"{place}: {variable} has no attribute {name}. {near}"


def _never_true(rule: Rule, tree: Any, words: Vocabulary) -> Iterator[str]:
    """What Cedar accepts although it can never hold: a typo there would go unnoticed."""
    tools = words.values.get(("resource", "name"), ())
    for name, node in _nodes(tree):
        match name, node:
            case "has", {"left": {"Var": variable}, "attr": attribute}:
                if attribute not in words.variables[variable]:
                    yield _no_attribute(rule, words, variable, attribute)
            case "entity" | "__entity", {"type": "Principal", "id": id_}:
                if id_ != CALLER:
                    yield f"{rule.place()}: a rule cannot name a single caller ({id_}). {KINDS}"
            case "entity" | "__entity", {"type": "Tool", "id": id_} if tools and id_ not in tools:
                place = rule.place(re.escape(f'"{id_}"'))
                near = words.elsewhere(id_) or nearest(id_, tools)
                yield f'{place}: there is no tool "{id_}". {near}'
            case _:
                yield from _unknown_values(rule, name, node, words)


def _unknown_values(rule: Rule, name: str, node: Any, known: Vocabulary) -> Iterator[str]:
    if name == "like":
        pattern = "".join(_of_pattern(one)[1] for one in node["pattern"])
        fits = re.compile("".join(_of_pattern(one)[0] for one in node["pattern"]), re.DOTALL)
        yield from _unless_known(rule, node["left"], [pattern], known, fits.fullmatch)
    elif name in COMPARING:
        for one, other in ((node["left"], node["right"]), (node["right"], node["left"])):
            values = [value.get("Value") for value in other.get("Set", [other])]
            yield from _unless_known(rule, one, values, known)


def _of_pattern(part: Any) -> tuple[str, str]:
    """A part of a pattern as a regular expression, and as it was written."""
    return (".*", "*") if part == "Wildcard" else (re.escape(part["Literal"]), part["Literal"])


def _unless_known(
    rule: Rule,
    attribute: Any,
    values: Iterable[Any],
    words: Vocabulary,
    fits: Callable[[str], object] | None = None,
) -> Iterator[str]:
    match attribute:
        case {".": {"left": {"Var": variable}, "attr": name}} if (variable, name) in words.values:
            there = words.values[variable, name]
        case _:
            return
    for value in values:
        if isinstance(value, str) and not any(fits(x) if fits else x == value for x in there):
            place = rule.place(re.escape(f'"{value}"'))
            never = f"{variable}.{name} is never {'like ' if fits else ''}"
            yield f'{place}: {never}"{value}". {words.elsewhere(value) or nearest(value, there)}'


def _nodes(tree: Any) -> Iterator[tuple[str, Any]]:
    """Every named part of a rule, from the outside in."""
    coming = [tree]
    while coming:
        one = coming.pop()
        if isinstance(one, list):
            coming += reversed(cast("list[Any]", one))
        elif isinstance(one, dict):
            parts = cast("dict[str, Any]", one)
            yield from parts.items()
            coming += reversed(parts.values())

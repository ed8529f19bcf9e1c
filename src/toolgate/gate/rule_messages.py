"""What is wrong with a rule, told to its author: the usual mistakes in our words."""

import difflib
import re
from collections.abc import Callable, Iterable

from toolgate.gate.rule_schema import PRINCIPAL, TOOL, Vocabulary

MAX_NAMED = 20
SURE = 0.75
"""So alike two names must be where the one may as well be a text without its quotes."""
HEAD = "(principal, action, resource)"
NAMES = ("principal", "action", "resource", "context")
METHODS = ("contains", "containsAny", "containsAll", "isEmpty")
OPERATORS = {"and": "&&", "or": "||", "not": "!"}
TYPES = {
    "String": "a text",
    "Bool": "true or false",
    "Long": "a number",
    "datetime": "a number",
    "duration": "a number",
    PRINCIPAL: "the caller",
    TOOL: "the tool",
}
COMPARED = re.compile(r'(\w+\.\w+)\s*(==|!=)\s*("(?:\\.|[^"\\])*")', re.DOTALL)
NAMES_CALLER = re.compile(r'\bprincipal\s*(?:==|!=|in)\s*("(?:\\.|[^"\\])*")', re.DOTALL)
KINDS = "Compare principal.roles, principal.agent_type or principal.kind under `when`."
Match = re.Match[str]
Wording = Callable[[Match], str]


def nearest(name: str, options: Iterable[str]) -> str:
    """The name that was probably meant, or else those there are."""
    names = [one for one in options if one]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if near:
        return f"Did you mean {near[0]}?"
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return f"There is: {', '.join(names[:MAX_NAMED])}{more}."


def reword(error: str, rule: str, words: Vocabulary) -> tuple[str | None, str] | None:
    """Cedar's error in our words, and a pattern for the place in the rule if one is known."""
    if "are not compatible" in error:
        for match in COMPARED.finditer(rule):
            if match[1] in words.sets:
                return re.escape(match[0]), _compared_set(match)
    if named := NAMES_CALLER.search(rule):
        return re.escape(named[0]), f"a rule cannot name a single caller ({named[1]}). {KINDS}"
    for pattern, wording in WORDINGS.items():
        if match := re.search(pattern, error):
            word = match.groupdict().get("word")
            return rf"\b{word}\b" if word else None, wording(match)
    return None


def _compared_set(match: Match) -> str:
    attribute, operator, value = match.groups()
    instead = f"{'!' if operator == '!=' else ''}{attribute}.contains({value})"
    return f"{attribute} is a set, which is never equal to a text. Write {instead}."


def _unknown_variable(match: Match) -> str:
    name = match[1]
    if difflib.get_close_matches(name, NAMES, n=1, cutoff=SURE):
        return f"there is no variable {name}. {nearest(name, NAMES)}"
    variables = f"The variables are {', '.join(NAMES)}."
    return f'there is no variable {name}. {variables} A text needs quotes: "{name}".'


def _unknown_owner(match: Match) -> str:
    return f"there is no variable {match[1]}. {nearest(match[1], NAMES)}"


def _of_types(match: Match) -> str:
    one, other = sorted(_type(part) for part in match.groups())
    return f"{one} is compared with {other}; they are never equal."


def _expected(match: Match) -> str:
    types = " or ".join(dict.fromkeys(_type(one) for one in match[1].split(", or ")))
    return f"{_type(match[2])} stands where {types} is needed."


def _type(cedar: str) -> str:
    if cedar.startswith("Set<"):
        return "a set"
    return TYPES.get(cedar, cedar.rpartition("::")[2])


def _unexpected(match: Match) -> str:
    operator = OPERATORS.get(match[1])
    return f"`{match[1]}` is not expected here." + (f" Write {operator}." if operator else "")


WORDINGS: dict[str, Wording] = {
    r"invalid member access `(?P<word>\w+)\.": _unknown_owner,
    r"^invalid variable: (?P<word>\w+)": _unknown_variable,
    r"invalid variable in the policy scope: (?P<word>\w+)": lambda match: (
        f"{match[1]} cannot stand in the head of a rule. Write {HEAD}."
    ),
    r"missing the `(\w+)` variable in the scope": lambda match: (
        f"the head of the rule lacks {match[1]}. Write {HEAD}."
    ),
    r"invalid policy effect: (?P<word>\w+)": lambda match: (
        f"a rule begins with permit or forbid, not with {match[1]}."
    ),
    r"invalid policy condition: (?P<word>\w+)": lambda match: (
        f"a condition begins with when or unless, not with {match[1]}."
    ),
    r"the types (.+) and (.+) are not compatible": _of_types,
    r"expected Set<__cedar::internal::AnyEntity>|expected __cedar::internal::AnyEntity": lambda _: (
        "`in` compares entities. For texts write a set and contains, such as "
        'principal.roles.contains("admin") or ["pm", "pa"].contains(principal.agent_type).'
    ),
    r"expected Set<__cedar::internal::Any> but saw String": lambda _: (
        "contains, containsAny and containsAll are for sets, and here is a text. Compare a text "
        'with ==; write a set as ["a", "b"].'
    ),
    r"expected Bool but saw": lambda _: (
        'a condition must be true or false. Compare the value, such as resource.name == "…".'
    ),
    r"unexpected type: expected (.+) but saw (\S+)": _expected,
    r"'=' is not a valid operator": lambda _: "write == to compare, not =.",
    r"^invalid token": lambda _: (
        "there is a character that rules do not have, or a text without its end. Texts stand in "
        'double quotes: "…".'
    ),
    r"^unexpected token `(.+)`": _unexpected,
    r"^unexpected end of input": lambda _: "the rule has no end. Write ; after it.",
    r"expected an entity uid, found literal `(.+)`": lambda match: (
        f"write an entity, such as Action::{match[1]} or Tool::{match[1]}, not {match[1]} alone."
    ),
    r"`(?P<word>\w+)` is not a valid method": lambda match: (
        f"there is no method {match[1]}. {nearest(match[1], METHODS)}"
    ),
}

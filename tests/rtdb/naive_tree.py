"""The rules of a Realtime Database once more, as plain as can be.

Written for the tests' own server; shares no code with `toolgate.ports`, so that each checks the
other. A value is None, a scalar or a dict that is never empty.
"""

import json
import re
import time
from typing import Any

Value = Any
Keys = list[str]


class Invalid(Exception):
    """What the server refuses with status 400."""


def clean(value: Value) -> Value:
    """A value without what vanishes, lists as dicts."""
    if isinstance(value, list):
        value = {str(index): one for index, one in enumerate(value)}
    if not isinstance(value, dict):
        return value
    for key in value:
        if not key or len(key.encode()) > 768 or re.search(r"[.$#\[\]/\x00-\x1f\x7f]", key):
            raise Invalid("Invalid data; couldn't parse key beginning at 1:2. Key value can't be"
                          " empty or contain $ # [ ] / or .")  # fmt: skip
    cleaned = {key: clean(one) for key, one in value.items()}
    return {key: one for key, one in cleaned.items() if one is not None} or None


def worked_out(value: Value, before: Value, now: int) -> Value:
    """Server values replaced, before anything is cleaned."""
    if isinstance(value, list):
        value = {str(index): one for index, one in enumerate(value)}
    if not isinstance(value, dict):
        return value
    if list(value) != [".sv"]:
        return {key: worked_out(one, look(before, [key]), now) for key, one in value.items()}
    match value[".sv"]:
        case "timestamp":
            return now
        case {"increment": by}:
            number = isinstance(before, int | float) and not isinstance(before, bool)
            total = before + by if number else by
            in_64_bits = -(2**63) <= total < 2**63
            return total if isinstance(total, float) or in_64_bits else float(total)
        case _:
            raise Invalid("Invalid server value")


def look(value: Value, keys: Keys) -> Value:
    """What is below a value."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def put(root: Value, keys: Keys, value: Value) -> Value:
    """The tree with a clean value at a path."""
    if not keys:
        return value
    if value is None and not isinstance(root, dict):
        return root
    children = dict(root) if isinstance(root, dict) else {}
    children[keys[0]] = put(children.get(keys[0]), keys[1:], value)
    return {key: one for key, one in children.items() if one is not None} or None


def now() -> int:
    """Milliseconds since 1970."""
    return int(time.time() * 1000)


def shown(value: Value) -> Value:
    """A value as it is sent, with lists."""
    if not isinstance(value, dict):
        return value
    sent = {key: shown(one) for key, one in value.items()}
    if all(re.fullmatch("0|[1-9][0-9]{0,8}", key) for key in sent):
        largest = max(map(int, sent))
        if 2 * len(sent) > largest:
            return [sent.get(str(index)) for index in range(largest + 1)]
    return sent


def key_order(key: str) -> tuple[Any, ...]:
    """Integers of 32 bits first."""
    if re.fullmatch("-?[0-9]+", key) and -(2**31) <= int(key) < 2**31:
        return (0, int(key), len(key), b"")
    return (1, 0, 0, key.encode())


def value_order(value: Value) -> tuple[Any, ...]:
    """null, false, true, numbers, strings, objects."""
    if value is None:
        return (0, 0)
    if value is False:
        return (1, 0)
    if value is True:
        return (2, 0)
    if isinstance(value, int | float):
        return (3, value)
    if isinstance(value, str):
        return (4, value.encode())
    return (5, 0)


def query(value: Value, asked: dict[str, str]) -> Value:
    """The children that pass; in what order they are sent is nobody's promise, here backwards."""
    order_by = _parsed(asked["orderBy"])[0]
    if not isinstance(order_by, str) or not order_by:
        raise Invalid("orderBy must be a valid JSON encoded path")
    by_key = order_by == "$key"

    def rank(key: str, child: Value) -> tuple[Any, ...]:
        if by_key:
            return (key_order(key), key_order(key))
        found = child if order_by == "$value" else look(child, order_by.split("/"))
        return (value_order(found), key_order(key))

    children = value if isinstance(value, dict) else {}
    ranked = sorted((rank(key, child), key) for key, child in children.items())
    for name in ("startAt", "startAfter", "endAt", "endBefore", "equalTo"):
        if name not in asked:
            continue
        bound, *name_of_key = _parsed(asked[name])
        if by_key and (not isinstance(bound, str) or name_of_key):
            raise Invalid(f"{name} must be a key when ordering by key")
        there = [key_order(bound) if by_key else value_order(bound), *map(key_order, name_of_key)]
        ranked = [one for one in ranked if _within(name, list(one[0][: len(there)]), there)]
    if "limitToFirst" in asked and "limitToLast" in asked:
        raise Invalid("Only one of limitToFirst and limitToLast may be specified")
    if "limitToFirst" in asked:
        ranked = ranked[: _limit(asked["limitToFirst"])]
    if "limitToLast" in asked:
        ranked = ranked[-_limit(asked["limitToLast"]) :]
    return {key: children[key] for _, key in reversed(ranked)}


def _within(name: str, here: list[Any], there: list[Any]) -> bool:
    return {
        "startAt": here >= there,
        "startAfter": here > there,
        "endAt": here <= there,
        "endBefore": here < there,
        "equalTo": here == there,
    }[name]


def _limit(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise Invalid("limitToFirst/limitToLast must be an integer above 0")
    return int(text)


def _parsed(text: str) -> list[Any]:
    """One JSON value, or two with a comma between."""
    try:
        return json.loads(f"[{text}]")
    except ValueError:
        raise Invalid("Constraint index field must be a JSON primitive") from None

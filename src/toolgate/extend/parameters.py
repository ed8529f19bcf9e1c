"""Arguments in a query string, as OpenAPI's `style` and `explode` say.

https://spec.openapis.org/oas/v3.1.1.html#style-values
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import quote

from toolgate.gate.errors import InvalidArguments, Problem

STYLES = ("form", "spaceDelimited", "pipeDelimited", "deepObject")
DELIMITERS = {"form": ",", "spaceDelimited": "%20", "pipeDelimited": "%7C"}
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class QueryStyle:
    """How one argument is written in the query."""

    style: str = "form"
    explode: bool = True

    def pairs(self, name: str, value: Any) -> list[Pair]:
        """Names and values, percent-encoded."""
        if isinstance(value, dict):
            return self._of_object(name, cast("dict[str, Any]", value))
        if not isinstance(value, list):
            return [(percent_encode(name), percent_encode(value))]
        items = [percent_encode(one) for one in cast("list[Any]", value)]
        if self.explode or self.style == "deepObject":
            return [(percent_encode(name), one) for one in items]
        return [(percent_encode(name), DELIMITERS[self.style].join(items))]

    def _of_object(self, name: str, value: dict[str, Any]) -> list[Pair]:
        fields = [
            (percent_encode(key), percent_encode(one))
            for key, one in value.items()
            if one is not None
        ]
        if self.style == "deepObject":
            return [(f"{percent_encode(name)}%5B{key}%5D", one) for key, one in fields]
        if self.explode:
            return fields
        flat = [part for field in fields for part in field]
        return [(percent_encode(name), DELIMITERS[self.style].join(flat))]


def percent_encode(value: Any) -> str:
    """A name or a value, percent-encoded; what is neither text nor number is JSON."""
    return quote(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), "")


def query_of(arguments: Mapping[str, Any], styles: Mapping[str, QueryStyle]) -> str:
    """The query string; without a style, lists and objects are JSON."""
    pairs: list[Pair] = []
    for name, value in arguments.items():
        if value is None:
            continue
        if style := styles.get(name):
            own_pairs = style.pairs(name, value)
            _check_unique(name, own_pairs, set(arguments) | set(styles))
            pairs += own_pairs
        else:
            pairs.append((percent_encode(name), percent_encode(value)))
    return "&".join(f"{name}={value}" for name, value in pairs)


def _check_unique(name: str, pairs: Iterable[Pair], arguments: set[str]) -> None:
    """Raise if a field of an object would be sent under the name of another argument."""
    others = {percent_encode(one): one for one in arguments if one != name}
    if double := next((others[key] for key, _ in pairs if key in others), None):
        message = (
            f"{name} must not have a field {double}: it would be sent as the argument {double}"
        )
        raise InvalidArguments([Problem(name, "value", message)])

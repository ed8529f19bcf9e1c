"""Which of the preferences that apply to a task win."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from toolgate.packs.orchestrator.records import Layer, fits


@dataclass(slots=True)
class EffectivePreferences:
    """What applies, where it is from (or what hides it), and what was skipped."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    sources: dict[str, Layer] = field(default_factory=dict[str, Layer])
    invalid: list[Layer] = field(default_factory=list[Layer])


def effective_of(layers: Iterable[Layer]) -> EffectivePreferences:
    """Apply preferences one after the other, the weakest first.

    Null hides what came before. A value that contradicts its type changes nothing.
    """
    found = EffectivePreferences()
    for layer in layers:
        record = layer.record
        if record.value is None:
            found.values.pop(record.key, None)
            found.sources[record.key] = layer
        elif fits(record.value, record.value_type):
            found.values[record.key] = record.value
            found.sources[record.key] = layer
        else:
            found.invalid.append(layer)
    found.values = dict(sorted(found.values.items()))
    found.sources = dict(sorted(found.sources.items()))
    return found

"""What a dry run would change, for a person."""

import json
from typing import TYPE_CHECKING, Any, cast

from toolgate.cli.output import GAP, escaped_json, note, printable

if TYPE_CHECKING:
    from toolgate.gate.diffs import Diff

MAX_BYTES = 65536


def note_diff(diff: "Diff") -> None:
    """Each record, and below it its fields: `-` as they are, `+` as they would be."""
    told = json.loads(diff.json(MAX_BYTES))
    for change in told["changes"]:
        before, after = change["before"], change["after"]
        verb = "create" if before is None else "delete" if after is None else "update"
        note(f"{verb} {change['store']} {printable(change['path'])}")
        for line in _lines(before, after):
            note(GAP + line)
    if told["omitted"]:
        note(f"{told['omitted']} more changes are not shown")


def _lines(before: Any, after: Any) -> list[str]:
    old, new = _encoded(before), _encoded(after)
    lines: list[str] = []
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) != new.get(name):
            lines += [f"- {name}: {old[name]}"] if name in old else []
            lines += [f"+ {name}: {new[name]}"] if name in new else []
    return lines


def _encoded(image: Any) -> dict[str, str]:
    """The fields of a document, or the one value; as JSON, where true is not 1."""
    if image is None:
        return {}
    fields = cast("dict[str, Any]", image) if isinstance(image, dict) else {"value": image}
    return {
        printable(name): escaped_json(json.dumps(value, ensure_ascii=False))
        for name, value in fields.items()
    }

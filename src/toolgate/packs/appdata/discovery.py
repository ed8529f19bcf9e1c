"""Proposing a file of collections from the documents that are there.

The proposal has names and types, never values: nobody's data ends up in a file.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import cast

from toolgate.ports.documents import DocumentStore, Fields, Json, Query, StoredDocument
from toolgate.ports.rules import broken_id_rule

BARE = re.compile(r"[A-Za-z0-9_-]+")
HEAD = """\
# Proposed by `toolgate appdata discover` from the first documents of each collection.
# Say what each collection and field holds: models read it. Remove what they must not see.
# Documents can be created only where writable is true.
"""


async def propose(store: DocumentStore, limit: int, progress: Callable[[int, int], None]) -> str:
    """The text of such a file, from the first documents of each collection; empty without any.

    `progress` takes how many collections were read, of how many.
    """
    names = [name for name in await store.collections() if not broken_id_rule(name)]
    tables: list[str] = []
    for done, name in enumerate(names, 1):
        if documents := await store.query(Query(name, limit=limit)):
            tables.append(_collection(name, documents))
        progress(done, len(names))
    return "\n".join([HEAD, *tables]) if tables else ""


def _collection(name: str, documents: Sequence[StoredDocument]) -> str:
    lines = [
        f"[collections.{_key(name)}]",
        f"description = {_text(f'{name} (not described yet)')}",
        'document_type = "Document"',
        'owner = "Application"',
        "writable = false",
        "",
        f"[collections.{_key(name)}.fields]",
        """id = { type = "string", description = "The document's id" }""",
    ]
    every = [one.fields for one in documents]
    names = dict.fromkeys(name for fields in every for name in fields if name and name != "id")
    return "\n".join([*lines, *(_field(name, every) for name in names), ""])


def _field(name: str, documents: Sequence[Fields]) -> str:
    counted = Counter(type_of(fields[name]) for fields in documents if name in fields)
    types = [one for one in counted if one != "null"]
    mixed = ", ".join(f"{one} in {counted[one]}" for one in counted) if len(types) > 1 else ""
    description = _text(f"Mixed types: {mixed}" if mixed else "")
    present = f"# in {counted.total()} of {len(documents)} documents"
    line = f"{_key(name)} = {{ type = {_text(' | '.join(counted))}, description = {description} }}"
    return line if counted.total() == len(documents) else f"{line} {present}"


def type_of(value: Json) -> str:
    """The type of a JSON value, in TypeScript notation."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return _list_type(cast("list[Json]", value))
        case _:
            return "object"


def _list_type(values: list[Json]) -> str:
    inner = " | ".join(dict.fromkeys(type_of(one) for one in values)) or "unknown"
    return f"({inner})[]" if " " in inner else f"{inner}[]"


def _key(name: str) -> str:
    return name if BARE.fullmatch(name) else _text(name)


def _text(value: str) -> str:
    """A basic string of TOML, with every invisible character as an escape."""
    return "".join(map(_escape, json.dumps(value, ensure_ascii=False)))


def _escape(character: str) -> str:
    return character if character.isprintable() else f"\\U{ord(character):08x}"

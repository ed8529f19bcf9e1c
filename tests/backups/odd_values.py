"""Values that get lost between two databases, or between a database and a file, if any do."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import insert

from toolgate.db.oauth_tables import clients
from toolgate.db.tables import tree_nodes
from toolgate.ports.documents import Create, Delete, Merge
from toolgate.testing import Kit

TEXTS = [
    "",
    " ",
    "\\N",
    "\\.",
    "\t\r\n\\t\v\x7f\x01",
    "'\"; DROP TABLE audit; --",
    "null",
    "Grüße, 你好, \u202eabc\u202c, 👩‍👩‍👧‍👦, \uffff \ue000 \U0010ffff \u2028",
    "x" * 100_000,
]
NUMBERS = [0, -1, 2**53, 2**63 - 1, -(2**63), 0.1, -0.0, 1e308, 5e-324, 1.5]

SOME_DAY = {"created_at": "2026-01-01T00:00:00.000000Z", "expires_at": "2099"}


def _deep(levels: int) -> Any:
    value: Any = "bottom"
    for _ in range(levels):
        value = {"": value}
    return value


def odd_documents() -> list[dict[str, Any]]:
    return [
        *({"text": one, one[:50] or "empty": one} for one in TEXTS),
        *({"number": one, "list": [one, str(one)]} for one in NUMBERS),
        {"deep": _deep(18)},
        {"nothing": None, "true": True, "false": False, "map": {}, "list": []},
        {},
    ]


async def fill(kit: Kit, namespaces: Sequence[str] = ("appdata", "backend")) -> None:
    """Documents, a tree and JSON with such values; some are changed, and one is deleted again."""
    database = kit.app.gate.database
    for namespace in namespaces:
        documents = kit.app.documents.of(namespace)
        for number, fields in enumerate(odd_documents()):
            async with database.transaction() as tx:
                await documents.write(tx, Create("odd", f"{number:03} ünï/", fields))
        async with database.transaction() as tx:
            await documents.write(tx, Merge("odd", "000 ünï/", {"more": {"a": [1, {"b": "c"}]}}))
            await documents.write(tx, Create("users/abc123/things", "1", {"below": True}))
            await documents.write(tx, Create("odd", "gone", {"secret": "of the last one"}))
        async with database.transaction() as tx:
            await documents.write(tx, Delete("odd", "gone"))
    paths = [bytes([one]) + b"\\\x00x" for one in (0, 1, 10, 92, 127, 128, 255)]
    nodes = [{"namespace": "network", "path": path, "value": '"v"'} for path in paths]
    values: list[Any] = [5, 1.5, "five", True, None, [], {"a": 1}]
    apps = [
        {"id": f"odd-{number}", "name": "", "redirect_uris": value, **SOME_DAY}
        for number, value in enumerate(values)
    ]
    await database.write(lambda connection: connection.execute(insert(tree_nodes), nodes))
    await database.write(lambda connection: connection.execute(insert(clients), apps))

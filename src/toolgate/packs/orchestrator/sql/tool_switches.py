"""Settings that switch tools off, handed to the gate in the transaction that changes them."""

from collections.abc import Iterator
from typing import Any

import orjson
from sqlalchemy import Connection, or_, select

from toolgate.gate.live_switches import store_switches
from toolgate.packs.orchestrator.pack import ORCHESTRATOR
from toolgate.packs.orchestrator.sql.tables import settings
from toolgate.packs.orchestrator.steering import DISABLED, ENABLED, tool_of


def hand_over(connection: Connection, key: str) -> None:
    """After a change of this setting, tell the gate what is off now."""
    if key == DISABLED or tool_of(key) is not None:
        store_switches(connection, ORCHESTRATOR.name, _off(connection))


def _off(connection: Connection) -> Iterator[str]:
    steering = or_(settings.c.key == DISABLED, settings.c.key.like("mcp.tool.%"))
    rows = connection.execute(select(settings).where(steering, ~settings.c.deleted)).all()
    for row in rows:
        value: Any = orjson.loads(row.value)
        if row.key == DISABLED:
            yield from (name for name in value if isinstance(name, str))
        elif (tool := tool_of(row.key)) and row.key.endswith(ENABLED) and value is False:
            yield tool

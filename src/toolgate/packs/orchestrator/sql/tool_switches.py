"""Settings that switch tools off, handed to the gate in the transaction that changes them."""

import orjson
from sqlalchemy import Connection, or_, select

from toolgate.gate.live_switches import store_switches
from toolgate.packs.orchestrator.pack import ORCHESTRATOR
from toolgate.packs.orchestrator.sql.tables import settings
from toolgate.packs.orchestrator.steering import (
    DISABLED,
    SETTING_TOOLS,
    tool_of,
    tools_switched_off,
)


def hand_over(connection: Connection, key: str) -> None:
    """After a change of this setting, tell the gate what is off now."""
    if key == DISABLED or tool_of(key) is not None:
        store_switches(connection, ORCHESTRATOR.name, _off(connection))


def _off(connection: Connection) -> dict[str, list[str]]:
    """The tools that are off, each with the settings that say so."""
    steering = or_(settings.c.key == DISABLED, settings.c.key.like("mcp.tool.%"))
    rows = connection.execute(select(settings).where(steering, ~settings.c.deleted)).all()
    off: dict[str, list[str]] = {}
    for row in sorted(rows, key=lambda row: row.key):
        for tool in dict.fromkeys(tools_switched_off(row.key, orjson.loads(row.value))):
            if not tool.startswith(SETTING_TOOLS):
                off.setdefault(tool, []).append(row.key)
    return off

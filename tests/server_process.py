"""A toolgate server for tests, in a process of its own.

python -m tests.server_process '{"data": "DIR", "admin_key": "…"}'

Loads the demo data, makes a key for a user and one for each type of agent, and prints one line
of JSON when it listens: {"url": "http://127.0.0.1:PORT", "keys": {"user": "…", "pm": "…"}}.
"""

import json
import sys
from contextlib import suppress
from typing import Any

import anyio
from tests.patience import DEADLINES, OF_SERVERS, hold_the_minute, lengthen

from toolgate import demo
from toolgate.app import opened
from toolgate.gate.principal import AgentType, Role
from toolgate.http_server import certificate_for, listen, run
from toolgate.settings import Settings, read_settings
from toolgate.stop_signals import StopSignals
from toolgate.transports.connection.choice import connection_class

# Here, and not in `main`: workers import this module too.
lengthen(DEADLINES | OF_SERVERS)
hold_the_minute()


async def prepare(settings: Settings) -> dict[str, str]:
    async with opened(settings) as app:
        with suppress(demo.NotForDemo):  # where a test has stored its own
            await demo.load_demo(app)
        made = {"user": await app.keys.create(role=Role.USER, user_id="abc123")}
        for agent_type in AgentType:
            made[agent_type.value] = await app.keys.create(agent_type=agent_type)
        return {name: one.key for name, one in made.items()}


def main() -> None:
    flags: dict[str, Any] = json.loads(sys.argv[1])
    settings = read_settings(flags={"server.port": 0, **flags}, environment={})
    keys = anyio.run(prepare, settings)
    if settings.server.https:
        certificate_for(settings)
    bound = listen(settings)
    connections = connection_class(known_heads=settings.server.known_heads)
    signals = StopSignals()
    signals.install()
    url = f"{'https' if settings.server.https else 'http'}://127.0.0.1:{bound.getsockname()[1]}"
    print(json.dumps({"url": url, "keys": keys}), flush=True)
    with signals.held():
        run(settings, bound, connections, signals)


if __name__ == "__main__":
    main()

"""Documents on SQLite and PostgreSQL: one read and one made, beside Toolbox; three found."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
from sqlalchemy import make_url

from bench import servers
from bench.calls import OURS
from bench.data import FILE
from bench.jobs import NEW_ID
from bench.messages import DOCUMENT, NEW, request
from bench.postgres import Postgres, postgres
from bench.racing import Runner, race, tell
from bench.servers import Server, Settings
from bench.stage import Stage
from bench.toolbox import make_table, toolbox

OF_ECHO = 4.0
FOUND: dict[str, Any] = {
    "name": "query_collection",
    "arguments": {
        "collection": "apps",
        "filters": [{"field": "status", "operator": "==", "value": "active"}],
    },
}
"""Finds three of nine."""
NOTHING = b'"content":[]'
"""What Toolbox answers to an insert that worked."""
FIELDS = {"name": "My New App", "status": "beta", "category": "community"}


@dataclass(frozen=True, slots=True)
class Side:
    """toolgate on a kind of database, and where Toolbox has the same rows."""

    database: str
    ours: Server
    url: str


def document(stage: Stage) -> None:
    """Read the same row, 16 connections, everyone on one core."""
    with ExitStack() as stack:
        sides = [Side("SQLite", stage.ours, f"sqlite:///{stage.data / FILE}")]
        if server := stage.peer("PostgreSQL", lambda: stack.enter_context(postgres())):
            url = server.new_database("bench")
            sides.append(Side("PostgreSQL", _on(server, url, stage, stack), url))
        _compare(stage, stack, "get_document", sides, _reader)


def creation(stage: Stage) -> None:
    """Make a document in each call, beside an insert of the same row into the same table."""
    with ExitStack() as stack:
        settings = Settings(data=stage.folder / "made", tools=stage.tools, writes=True)
        ours = stack.enter_context(servers.toolgate(settings))
        sides = [Side("SQLite", ours, f"sqlite:///{stage.folder / 'inserted.db'}")]
        if server := stage.peer("PostgreSQL", lambda: stack.enter_context(postgres())):
            ours = _on(server, server.new_database("made"), stage, stack)
            sides.append(Side("PostgreSQL", ours, server.new_database("inserted")))
        for one in sides:
            make_table(one.url)
        _compare(stage, stack, "create_document", sides, _maker)


def search(stage: Stage) -> None:
    """Three documents found by one of their fields, beside the echo."""
    asked = request("tools/call", FOUND, NEW, key=stage.ours.key)
    runners = [
        stage.runner("echo", stage.ours, "echo", NEW),
        Runner(name=OURS, server=stage.ours, requests=[asked], marker=b'\\"count\\":3'),
    ]
    tell("query_collection, 3 results")
    found = race(runners, stage.rounds)
    what = "query_collection, 3 results"
    stage.book.note(f"{what} {NEW}", found)
    stage.book.cpu(f"{what}: CPU / the echo's", found[OURS], found["echo"], OF_ECHO)


def _compare(
    stage: Stage,
    stack: ExitStack,
    tool: str,
    sides: list[Side],
    runner: Callable[[str, Server], Runner],
) -> None:
    """toolgate beside Toolbox on each database."""
    runners: list[Runner] = []
    for one in sides:
        runners.append(runner(f"toolgate, {one.database}", one.ours))
        file = stage.folder / f"toolbox-{tool}-{one.database}.yaml"
        beside = toolbox(one.url, file, one.ours.beside)
        if theirs := stage.peer("Toolbox", partial(stack.enter_context, beside)):
            runners.append(runner(f"Toolbox, {one.database}", theirs))
    tell(tool)
    found = race(runners, stage.rounds)
    stage.book.note(f"{tool} {NEW}", found)
    for one in sides:
        if other := found.get(f"Toolbox, {one.database}"):
            ours, what = found[f"toolgate, {one.database}"], f"{tool} on {one.database}"
            stage.book.cpu(f"{what}: CPU / Toolbox's", ours, other, 1)
            stage.book.speed(f"{what}: calls/s / Toolbox's", ours, other, 1)


def _reader(name: str, server: Server) -> Runner:
    asked = request("tools/call", DOCUMENT, NEW, key=server.key)
    return Runner(name=name, server=server, requests=[asked], marker=b"jane@example.com")


def _maker(name: str, server: Server) -> Runner:
    """Who has a key is toolgate; Toolbox takes the fields as they are stored."""
    data, marker = (FIELDS, NEW_ID) if server.key else (orjson.dumps(FIELDS).decode(), NOTHING)
    made = {"collection": "apps", "document_id": NEW_ID.decode(), "data": data}
    call = {"name": "create_document", "arguments": made}
    asked = request("tools/call", call, NEW, key=server.key)
    return Runner(name=name, server=server, requests=[asked], marker=marker)


def _on(server: Postgres, url: str, stage: Stage, stack: ExitStack) -> Server:
    settings = Settings(
        data=stage.folder / make_url(url).database,
        tools=stage.tools,
        database_url=url,
        writes=True,
        beside=(server.pid,),
    )
    return stack.enter_context(servers.toolgate(settings))

"""The servers of one run, started when first needed and ended with it."""

import tempfile
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, ExitStack
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypeVar

import orjson

from bench import installing, servers
from bench.messages import ECHO, NEW, OLD, TEXT, Answer, ask, request
from bench.racing import ROUNDS, Runner, tell
from bench.servers import Server, Settings
from bench.table import Book

TOOLS = 100
"""Tools of one's own; the built-in ones come on top."""
CALLS: dict[str, tuple[str, dict[str, Any], bytes]] = {
    "echo": ("tools/call", ECHO, TEXT.encode()),
    "list": ("tools/list", {}, b'"filler_99"'),
}
T = TypeVar("T")


class Stage:
    """Where contestants meet."""

    def __init__(self, book: Book, without: Collection[str] = (), rounds: int = ROUNDS) -> None:
        self.book = book
        self.rounds = rounds
        self._without = without
        self._stack = ExitStack()
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-")))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def enter(self, manager: AbstractContextManager[T]) -> T:
        """Keep something open until the end of the run."""
        return self._stack.enter_context(manager)

    @cached_property
    def tools(self) -> Path:
        return servers.write_tools(self.folder / "tools.py", TOOLS)

    @cached_property
    def data(self) -> Path:
        return self.folder / "ours"

    @cached_property
    def ours(self) -> Server:
        tell("starting toolgate, with 100 own tools")
        return self.enter(servers.toolgate(Settings(data=self.data, tools=self.tools)))

    @cached_property
    def answers(self) -> dict[str, Answer]:
        """Our answers, for those who send the same without thinking."""
        ours = self.ours
        return {
            f"/{call}/{era}": ask(
                ours.port, request(CALLS[call][0], CALLS[call][1], era, key=ours.key)
            )
            for call in CALLS
            for era in (NEW, OLD)
        }

    @cached_property
    def bare(self) -> Server:
        tell("starting the bare ASGI handler")
        told = {
            path: {
                "headers": [one for one in answer.headers if one[0] != "date"],
                "body": answer.body.decode("latin-1"),
            }
            for path, answer in self.answers.items()
        }
        file = servers.write_json(self.folder / "answers.json", told)
        return self.enter(servers.module("bare", str(file)))

    @cached_property
    def listed(self) -> Path:
        """Our list of tools, for a server that lists the same."""
        result = orjson.loads(self.answers[f"/list/{NEW}"].body)["result"]
        return servers.write_json(self.folder / "listed.json", result["tools"])

    @cached_property
    def sdk(self) -> Server | None:
        return self.peer("SDK", lambda: self.enter(servers.module("sdk", str(self.listed))))

    @cached_property
    def fastmcp(self) -> Server | None:
        count = str(len(orjson.loads(self.listed.read_bytes())))

        def start() -> Server:
            return self.enter(servers.module("fast", count, python=installing.fastmcp()))

        return self.peer("FastMCP", start)

    def peer(self, name: str, start: Callable[[], T]) -> T | None:
        """Start another's server; where that is not possible, note who is missing, and why."""
        if name.lower() in self._without:
            return self._skip(name, "left out by --without")
        tell(f"starting {name} (a peer is installed at the first time)")
        try:
            return start()
        except installing.Missing as problem:
            return self._skip(name, str(problem))
        except Exception as problem:  # whatever it is, the others are measured all the same
            return self._skip(name, f"{type(problem).__name__}: {problem}")

    def _skip(self, name: str, why: str) -> None:
        tell(f"skipped {name}: {why}")
        self.book.skipped.append(f"{name}: {why}")

    def runner(
        self, name: str, server: Server, call: str, era: str, *, path: str = "/mcp"
    ) -> Runner:
        """A contestant who is asked one of CALLS."""
        method, params, marker = CALLS[call]
        asked = request(method, params, era, key=server.key or self.ours.key, path=path)
        return Runner(name=name, server=server, requests=[asked], marker=marker)

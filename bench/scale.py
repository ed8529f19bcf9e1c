"""What must not grow: with tools, audit rows and principals; and what must: with workers."""

from contextlib import ExitStack
from dataclasses import replace
from math import inf

from bench import data, servers
from bench.jobs import Measured
from bench.messages import ECHO, NEW, TEXT, request
from bench.racing import Runner, better, generate, job_of, race, tell
from bench.servers import Server, Settings, toolgate
from bench.stage import Stage
from bench.table import Check

GROWTH = 1.2
COLD_BOUND = 1.5
"""A key that was not seen in the last second, against one that was."""
FEW_TOOLS, MANY_TOOLS = 10, 10_000
ASKING = 20_000
"""Keys that ask in turn: more than are remembered for the second they are remembered."""
SPREAD = f"{ASKING:,} of {data.KEYS:,} keys"
WORKERS_BOUND, WORKERS_CONNECTIONS = 1.6, 32
TAIL_BOUND, TAIL_OF_BARE_BOUND = 10.0, 3.0
PACED_SECONDS = 3.0
KEPT = 0.97
"""Part of the planned calls a second below which the server was not at half load, but behind."""


def echo_runner(name: str, server: Server, keys: list[str], connections: int = 16) -> Runner:
    asked = [request("tools/call", ECHO, NEW, key=key) for key in keys]
    return Runner(
        name=name,
        server=server,
        requests=asked,
        marker=TEXT.encode(),
        connections=connections,
    )


def tools(stage: Stage) -> None:
    """Ten tools of one's own beside ten thousand."""
    few, many = f"{FEW_TOOLS} tools", f"{MANY_TOOLS:,} tools"
    with ExitStack() as stack:
        runners: list[Runner] = []
        for name, count in ((few, FEW_TOOLS), (many, MANY_TOOLS)):
            tell(f"starting toolgate with {name}")
            file = servers.write_tools(stage.folder / f"tools{count}.py", count)
            settings = Settings(data=stage.folder / f"tools{count}", tools=file)
            server = stack.enter_context(toolgate(settings))
            runners.append(echo_runner(name, server, [settings.key]))
        _compare(stage, "echo", runners, [(few, many)])


def audit(stage: Stage) -> None:
    """An empty audit beside ten million rows."""
    empty, long = "empty audit", f"{data.AUDIT_ROWS:,} audit rows"
    folders = {empty: stage.folder / "unaudited", long: data.long_audited()}
    with ExitStack() as stack:
        runners: list[Runner] = []
        for name, folder in folders.items():
            tell(f"starting toolgate with {name}")
            settings = Settings(data=folder, tools=stage.tools)
            server = stack.enter_context(toolgate(settings))
            runners.append(echo_runner(name, server, [settings.key]))
        _compare(stage, "echo", runners, [(empty, long)])


def principals(stage: Stage) -> None:
    """One key in a table of one, one in a table of many, and many that ask in turn."""
    alone, among = "1 key", f"1 of {data.KEYS:,} keys"
    with ExitStack() as stack:
        made: list[tuple[Server, list[str]]] = []
        for count in (1, data.KEYS):
            tell(f"starting toolgate with {count:,} keys")
            folder = stage.folder / f"keys{count}"
            keys = data.with_keys(folder, count)
            settings = Settings(data=folder, tools=stage.tools)
            made.append((stack.enter_context(toolgate(settings)), keys))
        (one, its), (many, theirs) = made
        runners = [
            echo_runner(alone, one, its),
            echo_runner(among, many, theirs[:1]),
            echo_runner(SPREAD, many, theirs[-ASKING:]),
        ]
        found = _compare(stage, "echo", runners, [(alone, among)])
        what = f"CPU of echo, {ASKING:,} keys that take turns / one key"
        stage.book.cpu(what, found[SPREAD], found[among], COLD_BOUND)


def _compare(
    stage: Stage, asked: str, runners: list[Runner], pairs: list[tuple[str, str]]
) -> dict[str, Measured]:
    found = race(runners, stage.rounds)
    stage.book.note(f"{asked} {NEW}", found)
    for small, large in pairs:
        stage.book.cpu(f"CPU of {asked}, {large} / {small}", found[large], found[small], GROWTH)
    return found


def workers(stage: Stage) -> None:
    """Two workers beside one; nothing is pinned, so that two have both cores."""
    one, two = "1 worker, unpinned", "2 workers, unpinned"
    with ExitStack() as stack:
        runners: list[Runner] = []
        for name, count in ((one, 1), (two, 2)):
            tell(f"starting toolgate with {name}")
            folder = stage.folder / f"workers{count}"
            settings = Settings(data=folder, tools=stage.tools, workers=count, pinned=False)
            server = stack.enter_context(toolgate(settings))
            runners.append(echo_runner(name, server, [settings.key], WORKERS_CONNECTIONS))
        found = race(runners, stage.rounds)
        stage.book.note(f"echo {NEW}, {WORKERS_CONNECTIONS} connections", found)
        stage.book.speed("calls/s, two workers / one", found[two], found[one], WORKERS_BOUND)


def half_load(stage: Stage) -> None:
    """Calls at fixed times, half as many as we can answer; the bare handler is asked as often."""
    ours = echo_runner("toolgate", stage.ours, [stage.ours.key or ""])
    bare = stage.runner("bare ASGI handler", stage.bare, "echo", NEW, path=f"/echo/{NEW}")
    tell("echo at half load: finding the whole load")
    rate = race([ours], 1)["toolgate"].per_second / 2
    jobs = [
        (one.name, replace(job_of(one), rate=rate, seconds=PACED_SECONDS)) for one in (bare, ours)
    ]
    best: dict[str, Measured] = {}
    for number in range(1, stage.rounds + 1):
        for name, job in jobs:
            now = generate(job)
            kept = now.per_second >= KEPT * rate
            tell(
                f"  round {number}: {name} {now.per_second:.0f}/s of {rate:.0f}/s  "
                f"p50 {now.p50:.0f} µs  p99 {now.p99:.0f} µs"
                f"{'' if kept else '  fell behind: does not count'}"
            )
            if kept:
                best[name] = better(best[name], now) if name in best else now
    stage.book.note(f"echo {NEW}, half load", best)
    tail = "p99 at half load"
    for what, bound, needed in (
        (f"{tail} / p50", TAIL_BOUND, [ours.name]),
        (f"{tail} / the bare handler's p99", TAIL_OF_BARE_BOUND, [ours.name, bare.name]),
    ):
        if late := [name for name in needed if name not in best]:
            told = f"{' and '.join(late)} fell behind {rate:.0f}/s"
            stage.book.checks.append(Check(what=what, figures=told, ratio=inf, bound=bound))
            continue
        p99 = best[ours.name].p99
        other = best[bare.name].p99 if bare.name in needed else best[ours.name].p50
        stage.book.times(what, p99, other, bound)

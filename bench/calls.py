"""Calls over HTTP: toolgate beside a bare handler, the SDK, FastMCP and Toolbox."""

from bench.jobs import Measured
from bench.messages import NEW, OLD
from bench.racing import race, tell
from bench.stage import Stage

BARE, OURS, SDK, FASTMCP = "bare ASGI handler", "toolgate", "SDK low-level server", "FastMCP"
OF_BARE = {("echo", NEW): 2.0, ("echo", OLD): 2.2, ("list", NEW): 2.0, ("list", OLD): 2.0}
OF_SDK = 0.25


def echo(stage: Stage) -> None:
    _both_eras(stage, "echo")


def listing(stage: Stage) -> None:
    _both_eras(stage, "list")


def _both_eras(stage: Stage, call: str) -> None:
    for era in (NEW, OLD):
        found = _side_by_side(stage, call, era)
        ours = found[OURS]
        asked = f"{call} {era}"
        stage.book.note(asked, found)
        stage.book.cpu(f"{asked}: CPU / bare handler", ours, found[BARE], OF_BARE[call, era])
        if SDK in found:
            stage.book.cpu(f"{asked}: CPU / SDK's", ours, found[SDK], OF_SDK)


def _side_by_side(stage: Stage, call: str, era: str) -> dict[str, Measured]:
    runners = [
        stage.runner(BARE, stage.bare, call, era, path=f"/{call}/{era}"),
        stage.runner(OURS, stage.ours, call, era),
    ]
    for name, server in ((SDK, stage.sdk), (FASTMCP, stage.fastmcp)):
        if server:
            runners.append(stage.runner(name, server, call, era))
    tell(f"{call}, {era}")
    return race(runners, stage.rounds)

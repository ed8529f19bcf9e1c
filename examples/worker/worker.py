"""A small worker: it registers, says what it can do, stays in touch and fetches its configuration.

Nothing but the standard library. GATE_URL says where the gate is, NODE_KEY is the key that
`operator.node.create` showed.
"""

import argparse
import json
import os
import platform
import shutil
import signal
import sys
import threading
import urllib.error
import urllib.parse
import urllib.request
from typing import Any

EXAMPLE = "http://127.0.0.1:8765"
URL = os.environ.get("GATE_URL", EXAMPLE).strip().rstrip("/")
KEY = os.environ.get("NODE_KEY", "").strip()
HEADERS = {
    "Authorization": f"Bearer {KEY}",
    "Content-Type": "application/json",
}
PASSING = (409, 429, 502, 503, 504)
"""Answers after which it is worth to try again; 409: there is a newer configuration by now."""
NEW_KEY = "operator.node.create shows the key of a new node, operator.node.replace_key a new one."
Answer = dict[str, Any]


class Refused(Exception):
    """The gate said no, and will say so again."""


def call(tool: str, **arguments: Any) -> Answer:
    """What the gate answers; raises `Refused`, or `OSError` where it is worth to try again."""
    request = urllib.request.Request(
        f"{URL}/v1/tools/worker_node.{tool}", json.dumps(arguments).encode(), HEADERS
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)["result"]
    except urllib.error.HTTPError as error:
        if error.code in PASSING:
            raise
        said = error.read().decode(errors="replace")
        step = f" {NEW_KEY}" if error.code == 401 else ""
        raise Refused(f"worker_node.{tool} answered {error.code}: {said}{step}") from None


def snapshot() -> Answer:
    """What this machine can do."""
    pages, size = os.sysconf("SC_PHYS_PAGES"), os.sysconf("SC_PAGE_SIZE")
    return {
        "platform": {"os": platform.system(), "arch": platform.machine()},
        "compute": {"cpu_cores": os.cpu_count(), "memory_mb": pages * size // 2**20},
        "container_runtimes": [one for one in ("podman", "docker") if shutil.which(one)],
    }


class Worker:
    """One node."""

    def __init__(self, interval: float | None, models: list[str]) -> None:
        self.interval = interval
        self.configured: float | None = None
        self.models = [{"model": name, "status": "available"} for name in models]

    def start(self) -> Answer:
        """Register and report."""
        told = call("register", metadata={"hostname": platform.node()})
        print(f"{told['node_slug']} is registered", flush=True)
        return call("report_capabilities", capabilities=snapshot(), models=self.models)

    def refresh(self) -> Answer:
        """Fetch the configuration, apply it, and say what became of it."""
        fetched = call("get_config")
        ended: Answer = {"config_version": fetched["config_version"], "status": "applied"}
        try:
            self.apply(fetched["config"])
        except ValueError as problem:  # what was applied before stays in force
            ended |= {"status": "rolled_back", "error": str(problem)}
        told = call("acknowledge_config", **ended)
        print(f"configuration {ended['config_version']} {ended['status']}", flush=True)
        return told

    def apply(self, config: Answer) -> None:
        """Take over a configuration; raises `ValueError` and changes nothing where it is wrong."""
        seconds = config.get("heartbeat_seconds")
        if unknown := sorted(config.keys() - {"heartbeat_seconds"}):
            raise ValueError(f"unknown: {', '.join(unknown)}")
        if seconds is not None and not (isinstance(seconds, (int, float)) and seconds > 0):
            raise ValueError("heartbeat_seconds must be a number above 0")
        self.configured = seconds

    def run(self, stop: threading.Event) -> bool:
        """Work until told to stop; a gate that is away for a while is asked again.

        Whether the last round was a good one.
        """
        told: Answer | None = None
        while True:
            answered = True
            try:
                told = self.start() if told is None else call("heartbeat")
                if told["refresh_config_requested"]:
                    told = self.refresh()
            except OSError as problem:
                answered = False
                again = "" if stop.is_set() else ", trying again"
                print(f"{URL}: {problem}{again}", flush=True)
            seconds = told["heartbeat_seconds"] if told else 5
            if stop.wait(self.interval or self.configured or seconds):
                return answered


def seconds(text: str) -> float:
    """A time to wait; for `--interval`."""
    if not 0 < float(text) < float("inf"):
        raise ValueError(text)
    return float(text)


def problem_of_environment() -> str | None:
    """What is wrong with NODE_KEY or GATE_URL; the key itself is not repeated."""
    if KEY in ("", "null"):  # what jq prints where there is no key
        return f"NODE_KEY is not set. {NEW_KEY}"
    if not (KEY.isascii() and KEY.isprintable()):
        return "NODE_KEY has characters that are in no key. Set it again."
    try:
        url = urllib.parse.urlsplit(URL)
        if url.scheme in ("http", "https") and url.hostname and url.port != 0:
            return None
    except ValueError:  # a port that is no number, a broken IPv6 address
        pass
    return f"GATE_URL must begin with http:// or https:// and name a host, such as {EXAMPLE}."


def main() -> None:
    """Run a worker until SIGTERM or Ctrl-C."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--once", action="store_true", help="stop after the first round")
    options.add_argument("--interval", type=seconds, help="seconds between heartbeats, above 0")
    options.add_argument("--model", action="append", default=[], help="a model this machine has")
    given = options.parse_args()
    if problem := problem_of_environment():
        sys.exit(problem)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if given.once:
        stop.set()
    try:
        answered = Worker(given.interval, given.model).run(stop)
    except Refused as refused:
        sys.exit(str(refused))
    if given.once and not answered:
        sys.exit(1)


if __name__ == "__main__":
    main()

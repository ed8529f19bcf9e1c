"""`toolgate serve` that gets SIGTERM at a chosen place of its start.

python -m tests.faults.signalled_start PLACE [ARGUMENT …]

PLACE is `module:function` (its first call), or `#N` (the Nth call of any function), both counted
from when the signals are looked after. `#` alone prints how many calls there are, at the end.
"""

import os
import signal
import sys
from importlib import import_module
from operator import attrgetter
from types import FrameType
from typing import Any

from toolgate.cli.main import main
from toolgate.stop_signals import StopSignals


class Place:
    """Watches the calls, until the one that is looked for."""

    def __init__(self, wanted: str) -> None:
        self._wanted = wanted
        self.calls = 0

    def watch(self, frame: FrameType, event: str, _: Any) -> None:
        if event != "call":
            return
        self.calls += 1
        here = f"{frame.f_globals.get('__name__')}:{frame.f_code.co_qualname}"
        if self._wanted in (here, f"#{self.calls}"):
            sys.setprofile(None)
            print(f"SIGTERM at {here}", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    if ":" in sys.argv[1]:  # a place that was renamed would never be reached
        module, _, name = sys.argv[1].partition(":")
        attrgetter(name)(import_module(module))
    place = Place(sys.argv[1])
    install = StopSignals.install

    def install_and_watch(self: StopSignals) -> None:
        install(self)
        sys.setprofile(place.watch)

    StopSignals.install = install_and_watch
    try:
        main(["serve", "--port", "0", *sys.argv[2:]])
    finally:
        sys.setprofile(None)
        if sys.argv[1] == "#":
            print(place.calls, file=sys.stderr)

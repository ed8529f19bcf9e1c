"""A toolgate with tools that ask the client something in the middle of a call.

python -m tests.deploy.asking_server FILE
"""

import signal
import sys
import warnings
from functools import partial
from pathlib import Path

from mcp.shared.exceptions import MCPDeprecationWarning
from tests.conformance.plugin import offer

from toolgate import serving
from toolgate.settings import load


def main() -> None:
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    settings = load(file=Path(sys.argv[1]))
    bound = serving.listening(settings)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    serving.Application = partial(serving.Application, plugins=[offer()])  # type: ignore[misc]
    serving.run(settings, bound)


if __name__ == "__main__":
    main()

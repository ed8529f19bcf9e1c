"""A toolgate with tools that ask the client something in the middle of a call.

python -m tests.deploy.asking_server FILE
"""

import sys
import warnings
from functools import partial
from pathlib import Path

from mcp.shared.exceptions import MCPDeprecationWarning
from tests.conformance.plugin import offer

from toolgate import http_server
from toolgate.settings import read_settings
from toolgate.stop_signals import StopSignals
from toolgate.transports.connection.choice import connection_class


def main() -> None:
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    settings = read_settings(file=Path(sys.argv[1]))
    bound = http_server.listen(settings)
    signals = StopSignals()
    signals.install()
    http_server.Application = partial(http_server.Application, plugins=[offer()])  # type: ignore[misc]
    with signals.held():
        http_server.run(settings, bound, connection_class(known_heads=True), signals)


if __name__ == "__main__":
    main()

"""A request to the fork server for tests, and the program that is only that.

python -I -S tests/fork_client.py ADDRESS -m MODULE ARGUMENT…

The program stands for the process it asks for, where somebody else starts one and knows nothing of
the fork server: it hands over its streams, passes signals on, and ends as the process does. Nothing
is imported here that takes time.
"""

import json
import os
import signal
import socket
import struct
import sys

NUMBER = struct.Struct("!q")
STREAMS = 3
PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def ask(
    address: str,
    arguments: list[str],
    *,
    cwd: str,
    env: dict[str, str],
    streams: list[int],
    new_session: bool = False,
) -> tuple[socket.socket, int]:
    """Start a process: the connection its status will come on, and its id.

    Once the connection is closed the process is ended, if it still runs.
    """
    request = {"arguments": arguments, "cwd": cwd, "env": env, "new_session": new_session}
    body = json.dumps(request).encode()
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(address)
        socket.send_fds(connection, [NUMBER.pack(len(body))], streams)
        connection.sendall(body)
        return connection, number(connection)
    except BaseException:
        connection.close()
        raise


def number(connection: socket.socket, flags: int = 0) -> int:
    """The next number that the fork server says."""
    said = connection.recv(NUMBER.size, flags)
    if len(said) < NUMBER.size:
        raise RuntimeError("the fork server for tests has ended")
    return NUMBER.unpack(said)[0]


def main() -> None:
    """Be the process that is asked for, as seen by whoever started this one."""
    address, *arguments = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, PASSED_ON)
    streams = list(range(STREAMS))
    connection, pid = ask(
        address, arguments, cwd=os.getcwd(), env=dict(os.environ), streams=streams
    )
    for one in PASSED_ON:
        signal.signal(one, lambda number, _: os.kill(pid, number))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, PASSED_ON)
    for one in streams:  # only the process itself is to keep them open
        os.close(one)
    code = os.waitstatus_to_exitcode(number(connection))
    if code < 0:
        if -code in PASSED_ON:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


if __name__ == "__main__":
    main()

"""What the operating system knows of a TCP connection."""

import asyncio
import socket
import struct
import sys
from typing import Any

BYTES_ACKED = struct.Struct("=Q")
BYTES_ACKED_AT = 120
"""Its place in `struct tcp_info` of Linux, whose fields never move."""


def acknowledged_bytes(transport: asyncio.Transport) -> int | None:
    """How many bytes the client's system has acknowledged; None where ours does not tell.

    The event loop's buffer does not say so: the system takes from it in steps of up to a megabyte,
    which a slow reader takes minutes for.
    """
    connection: Any = transport.get_extra_info("socket")
    if connection is None or sys.platform != "linux":
        return None
    size = BYTES_ACKED_AT + BYTES_ACKED.size
    try:
        info: bytes = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, size)
    except OSError:  # no TCP, or closed
        return None
    return BYTES_ACKED.unpack_from(info, BYTES_ACKED_AT)[0] if len(info) == size else None

"""Mails with bare `aiosmtplib`: the same bytes to so many addresses, over so many connections.

python -m bench.apps.bare_mail PORT CONNECTIONS COUNT FILE

The file has the bytes. Prints how many seconds it took, and how many of them on the CPU.
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
from aiosmtplib import SMTP


async def main(port: int, connections: int, count: int, content: bytes) -> None:
    clients = [
        SMTP(hostname="127.0.0.1", port=port, start_tls=False, use_tls=False)
        for _ in range(connections)
    ]
    for one in clients:
        await one.connect()
    numbers = iter(range(count))
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(_send(one, numbers, content) for one in clients))
    took = {"seconds": time.perf_counter() - began, "cpu": time.process_time() - cpu}
    print(orjson.dumps(took).decode())
    for one in clients:
        await one.quit()


async def _send(client: SMTP, numbers: Iterator[int], content: bytes) -> None:
    for number in numbers:
        await client.mail("offers@example.com")
        await client.rcpt(f"user{number}@example.com")
        await client.data(content)


if __name__ == "__main__":
    port, connections, count, file = sys.argv[1:5]
    asyncio.run(main(int(port), int(connections), int(count), Path(file).read_bytes()))

"""A SeaweedFS server of our own: an S3 that checks signatures."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.patience import PATIENT

from toolgate.adapters.obstore import ObstoreBlobs, s3_blobs
from toolgate.ports.documents import StoreUnavailable

ACCESS_KEY, SECRET_KEY = "toolgate-tests", "a-secret-of-tests"
BUCKET = "toolgate-tests"
REGION = "us-east-1"
TURNS = ["master", "volume", "filer", "s3"]


@dataclass(frozen=True, slots=True)
class S3Server:
    """Where it is."""

    endpoint: str
    pid: int = 0

    def blobs(self, prefix: str, secret: str = SECRET_KEY, bucket: str = BUCKET) -> ObstoreBlobs:
        """Blobs under a prefix."""
        return s3_blobs(
            bucket,
            prefix,
            endpoint=self.endpoint,
            region=REGION,
            access_key_id=ACCESS_KEY,
            secret_access_key=secret,
        )


def _program() -> str:
    found = shutil.which("weed", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip("SeaweedFS is not installed here: its package is for Linux")
    return found


@contextmanager
def _free_ports(number: int) -> Iterator[list[int]]:
    """Ports that are free until the block is left."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        yield [one.getsockname()[1] for one in sockets]


@contextmanager
def running_seaweedfs(kept: Path | None = None) -> Iterator[S3Server]:
    """A server on loopback, once it takes writes; with its data in a folder that is kept."""
    program = _program()
    with ExitStack() as stack:
        folder = kept or stack.enter_context(
            tempfile.TemporaryDirectory(prefix="toolgate-", ignore_cleanup_errors=True)
        )
        config = Path(folder) / "s3.json"
        credentials = [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}]
        actions = ["Admin", "Read", "Write", "List"]
        holder = {"name": "tests", "credentials": credentials, "actions": actions}
        config.write_text(json.dumps({"identities": [holder]}), encoding="utf-8")
        with _free_ports(2 * len(TURNS)) as ports:
            pass
        said = [f"-{name}.port={port}" for name, port in zip(TURNS, ports, strict=False)]
        said += [f"-{name}.port.grpc={port}" for name, port in zip(TURNS, ports[4:], strict=True)]
        log = (Path(folder) / "log").open("w", encoding="utf-8")
        with log:
            process = subprocess.Popen(
                [
                    program,
                    "server",
                    f"-dir={folder}",
                    "-ip=127.0.0.1",
                    "-ip.bind=127.0.0.1",
                    "-filer",
                    "-s3",
                    f"-s3.config={config}",
                    "-s3.port.iceberg=0",
                    "-s3.port.lance=0",
                    "-volume.max=400",  # of 64 MB: a backup of 1 GB goes in more than once
                    "-master.volumeSizeLimitMB=64",
                    "-master.telemetry=false",
                    f"-filer.localSocket={folder}/filer.sock",
                    f"-s3.localSocket={folder}/s3.sock",
                    *said,
                ],
                cwd=folder,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        try:
            server = S3Server(f"http://127.0.0.1:{ports[3]}", process.pid)
            ready = _until_it_writes(server, process)
            with ThreadPoolExecutor(1) as apart:  # the loop of a test may run in this thread
                try:
                    apart.submit(asyncio.run, ready).result()
                except StoreUnavailable:
                    said_last = (Path(folder) / "log").read_text(encoding="utf-8")[-2000:]
                    pytest.fail(f"SeaweedFS did not start: {said_last}")
            yield server
        finally:
            process.kill()  # it takes its time to stop by itself
            process.wait()


async def _until_it_writes(server: S3Server, process: "subprocess.Popen[bytes]") -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + 2 * PATIENT
    while True:
        try:
            return await server.blobs("started").put("first", b"1")
        except StoreUnavailable:
            if process.poll() is not None or loop.time() > deadline:
                raise
            await asyncio.sleep(0.2)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A SeaweedFS that lives as long as the tests."""
    with running_seaweedfs() as server:
        yield server

"""toolgate with `deploy/toolgate.toml`, behind a real proxy."""

import os
import socket
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from tests import preloaded
from tests.deploy.proxies import DEPLOY, PROXIES, Place, replaced
from tests.patience import PATIENT
from tests.servers import ROOT, stop, wait_until_ready

ADMIN_KEY = "the-admin-key-of-the-deployed-server"
PUBLIC_URL = 'public_url = "https://tools.example.com"'
SERVE = ("toolgate", "serve", "--config")
ASKING = ("tests.deploy.asking_server",)


@dataclass(slots=True)
class Host:
    """A machine's worth of processes, and how to reach them."""

    place: Place
    trusted: Path
    """Certificate to trust."""
    program: tuple[str, ...]
    """What to run as toolgate; gets the settings file."""
    knows_its_address: bool
    server: subprocess.Popen[Any] | None = None

    @property
    def url(self) -> str:
        return f"https://localhost:{self.place.outer}"

    @property
    def inner_url(self) -> str:
        return f"http://127.0.0.1:{self.place.inner}"

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.trusted))

    def client(self, key: str | None = ADMIN_KEY) -> httpx2.Client:
        """A client that comes through the proxy; None for no credentials."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx2.Client(
            base_url=self.url, headers=headers, verify=self.trust, trust_env=False, timeout=PATIENT
        )

    def direct(self, source: str) -> httpx2.Client:
        """A client that goes past the proxy, from an address of its own."""
        transport = httpx2.HTTPTransport(local_address=source)
        return httpx2.Client(
            base_url=self.inner_url, transport=transport, trust_env=False, timeout=PATIENT
        )

    def start(self) -> None:
        """Start toolgate, and wait until it is ready."""
        file = self.place.folder.parent / "toolgate.toml"
        file.write_text(self._settings(file.parent), encoding="utf-8")
        self.server = preloaded.Popen(
            [sys.executable, "-m", *self.program, str(file)],
            cwd=ROOT,
            env={"PATH": os.environ["PATH"], "TOOLGATE_ADMIN_KEY": ADMIN_KEY},
            stdout=subprocess.DEVNULL,
        )
        wait_until_ready(self.inner_url, self.server)

    def stop(self) -> None:
        """End toolgate as an operator would."""
        if self.server is not None:
            stop(self.server)
            assert self.server.returncode == 0

    def _settings(self, folder: Path) -> str:
        public = f'public_url = "{self.url}"' if self.knows_its_address else ""
        return replaced(
            DEPLOY / "toolgate.toml",
            {
                "/var/lib/toolgate": str(folder / "data"),
                "port = 8765": f"port = {self.place.inner}",
                PUBLIC_URL: public,
            },
        )


@contextmanager
def hosted(
    proxy: str, *, program: tuple[str, ...] = SERVE, knows_its_address: bool = True
) -> Generator[Host, None, None]:
    """A proxy, and toolgate behind it."""
    kind = PROXIES[proxy]
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)  # the proxy is another user
        place = Place(Path(name) / "proxy", *free_ports(3))
        with ExitStack() as stack:
            process = stack.enter_context(kind.start(place))
            stack.callback(_end, process)
            host = Host(place, place.folder / kind.certificate, program, knows_its_address)
            stack.callback(host.stop)
            host.start()
            yield host


def _end(proxy: subprocess.Popen[Any]) -> None:
    proxy.terminate()
    proxy.wait(PATIENT)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    taken = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports

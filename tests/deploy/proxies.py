"""Real reverse proxies, each with the file of `deploy/` that is meant for it.

Of these files only addresses and paths are replaced; a main file around them does what the
distribution's own would do, without needing rights.
"""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.deploy.certificates import make_certificate
from tests.patience import PATIENT
from tests.servers import ROOT, pause

DEPLOY = ROOT / "deploy"
PATH = f"{os.environ['PATH']}:/usr/sbin"
NOBODY = 65534

NGINX_MAIN = """
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log {folder}/other.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/toolgate.conf;
}}
"""
CADDY_MAIN = """
{{
	admin off
	local_certs
	skip_install_trust
	default_bind 127.0.0.1
	http_port {plain}
	https_port {outer}
	storage file_system {folder}/storage
}}
import {folder}/toolgate.conf
"""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a proxy listens, what is behind it, and where its files are."""

    folder: Path
    inner: int
    """toolgate's port."""
    outer: int
    """The proxy's port for HTTPS."""
    plain: int
    """The proxy's port for HTTP."""

    @property
    def log(self) -> Path:
        return self.folder / "access.log"


@dataclass(frozen=True, slots=True)
class Proxy:
    """A kind of proxy: how it is set up, and which certificate its clients have to trust."""

    name: str
    package: str
    set_up: Callable[[Place], list[str]]
    certificate: str

    def start(self, place: Place) -> subprocess.Popen[Any]:
        """Start it as a user without rights, and wait until it listens."""
        program = shutil.which(self.name, path=PATH)
        if program is None:
            pytest.skip(f"needs {self.name} (apt install {self.package})")
        place.folder.mkdir()
        arguments = self.set_up(place)
        said = place.folder / "said"
        with said.open("w") as out:
            process = subprocess.Popen(
                [program, *arguments],
                env={"PATH": PATH, "HOME": str(place.folder)},
                stdout=out,
                stderr=subprocess.STDOUT,
                **_without_rights(place.folder),
            )
        _wait_until_there(place, self.certificate, process, said)
        return process


def _nginx(place: Place) -> list[str]:
    folder = place.folder
    certificate = make_certificate(folder)
    live = "/etc/letsencrypt/live/tools.example.com"
    site = replaced(
        DEPLOY / "nginx.conf",
        {
            f"{live}/fullchain.pem": str(certificate.chain),
            f"{live}/privkey.pem": str(certificate.key),
            "/var/log/nginx/toolgate.log": str(place.log),
            "127.0.0.1:8765": f"127.0.0.1:{place.inner}",
            "    listen [::]:80;\n": "",
            "    listen [::]:443 ssl;\n": "",
            "    listen [::]:443 ssl default_server;\n": "",
            "listen 80;": f"listen 127.0.0.1:{place.plain};",
            "listen 443 ssl;": f"listen 127.0.0.1:{place.outer} ssl;",
            "listen 443 ssl default": f"listen 127.0.0.1:{place.outer} ssl default",
            "tools.example.com$request_uri": f"localhost:{place.outer}$request_uri",
            "server_name tools.example.com;": "server_name localhost;",
        },
    )
    main = _written(folder, site, NGINX_MAIN.format(folder=folder))
    return ["-e", f"{folder}/error.log", "-p", str(folder), "-c", str(main)]


def _caddy(place: Place) -> list[str]:
    site = replaced(
        DEPLOY / "Caddyfile",
        {"tools.example.com {": "localhost {", "127.0.0.1:8765": f"127.0.0.1:{place.inner}"},
    )
    ports = {"plain": place.plain, "outer": place.outer}
    main = _written(place.folder, site, CADDY_MAIN.format(folder=place.folder, **ports))
    return ["run", "--adapter", "caddyfile", "--config", str(main)]


PROXIES = {
    "nginx": Proxy("nginx", "nginx-light", _nginx, "fullchain.pem"),
    "caddy": Proxy("caddy", "caddy", _caddy, "storage/pki/authorities/local/root.crt"),
}


def replaced(file: Path, changes: dict[str, str]) -> str:
    """A file's text with other addresses and paths; each of them must be there."""
    text = file.read_text(encoding="utf-8")
    for old, new in changes.items():
        assert old in text, f"{file.name} has no {old!r}"
        text = text.replace(old, new)
    return text


def _written(folder: Path, site: str, main: str) -> Path:
    (folder / "toolgate.conf").write_text(site, encoding="utf-8")
    (folder / "main.conf").write_text(main, encoding="utf-8")
    return folder / "main.conf"


def _without_rights(folder: Path) -> dict[str, Any]:
    """Root gives the folder away to nobody, and lets nobody run the proxy."""
    if os.geteuid() != 0:
        return {}
    for one in (folder, *folder.iterdir()):
        os.chown(one, NOBODY, NOBODY)
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def _wait_until_there(
    place: Place, certificate: str, process: subprocess.Popen[Any], said: Path
) -> None:
    deadline = time.monotonic() + PATIENT
    while time.monotonic() < deadline:
        assert process.poll() is None, said.read_text(encoding="utf-8")
        if _listens(place.outer) and (place.folder / certificate).is_file():
            return
        pause()
    process.kill()
    pytest.fail(f"the proxy was not there within {PATIENT:g} s")


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 5).close()
    except OSError:
        return False
    return True

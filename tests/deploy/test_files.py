"""The files of `deploy/` fit the product: settings, limits, requirements, commands."""

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from tests.deploy.hosting import ADMIN_KEY, free_ports
from tests.deploy.proxies import DEPLOY, PATH, replaced
from tests.patience import PATIENT
from tests.servers import ROOT, stop, wait_until_ready

from toolgate.sections import ServerSettings
from toolgate.settings import OWN, PREFIX, borrowed, every_setting, read_settings, setting_names
from toolgate.shutdown import ANSWER_SECONDS, CLOSE_SECONDS
from toolgate.transports.peers import Peers

VARIABLE = re.compile(rf"\b{PREFIX}[A-Z_]+\b")
PIN = re.compile(r"^(\S+==\S+)", re.M)
INSTALLED = "/opt/toolgate/bin/toolgate"


def text_of(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def setting_of(variable: str) -> str | None:
    return OWN.get(variable, variable.removeprefix(PREFIX).lower().replace("__", "."))


# Settings


def test_the_settings_file_is_read() -> None:
    settings = read_settings(file=DEPLOY / "toolgate.toml", environment={})
    assert settings.server.host == "127.0.0.1"
    assert settings.server.public_url == "https://tools.example.com"
    assert settings.server.trusted_proxies == ("127.0.0.1",)
    assert settings.admin_key is None
    assert settings.database.url is None


def test_the_proxies_have_the_servers_limit() -> None:
    most = read_settings(file=DEPLOY / "toolgate.toml", environment={}).limits.body_bytes
    assert most == read_settings(environment={}).limits.body_bytes
    assert f"client_max_body_size {most // 2**20}m;" in text_of("nginx.conf")
    assert f"max_size {most // 2**20}MiB" in text_of("Caddyfile")


def test_every_variable_that_a_file_names_is_a_setting() -> None:
    named = {
        (file.name, variable)
        for file in DEPLOY.iterdir()
        for variable in VARIABLE.findall(file.read_text(encoding="utf-8"))
    }
    assert {"Dockerfile", "cloud-run.yaml", "toolgate.toml"} <= {name for name, _ in named}
    assert [
        one for one in sorted(named) if setting_of(one[1]) not in setting_names(every_setting())
    ] == []


def test_no_file_holds_a_secret() -> None:
    secrets = [v for v in (*OWN, *borrowed(every_setting())) if v.endswith(("KEY", "CREDENTIALS"))]
    for file in DEPLOY.iterdir():
        text = file.read_text(encoding="utf-8")
        assert [one for one in secrets if re.search(rf"{one}\s*[=:]\s*\S", text)] == [], file.name


# A plain machine


def test_the_unit_is_accepted(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("needs systemd-analyze (apt install systemd)")
    unit = tmp_path / "toolgate.service"
    here = str(Path(sys.executable).parent / "toolgate")
    unit.write_text(replaced(DEPLOY / unit.name, {INSTALLED: here}), encoding="utf-8")
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=PATIENT,
        check=False,
    )
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_unit_leaves_time_to_drain() -> None:
    unit = configparser.ConfigParser(strict=False)
    unit.optionxform = str  # type: ignore[assignment]
    unit.read_string(text_of("toolgate.service"))
    service = unit["Service"]
    longest = ServerSettings().drain_seconds + ANSWER_SECONDS + CLOSE_SECONDS
    assert service.getint("TimeoutStopSec") >= longest
    assert service["KillMode"] == "mixed"
    state = read_settings(file=DEPLOY / "toolgate.toml", environment={}).data
    assert Path("/var/lib") / service["StateDirectory"] == state
    assert service["ExecStart"].split()[1:2] == ["serve"]


def test_the_caddyfile_is_valid(tmp_path: Path) -> None:
    caddy = shutil.which("caddy", path=PATH)
    if caddy is None:
        pytest.skip("needs caddy (apt install caddy)")
    checked = subprocess.run(
        [caddy, "validate", "--adapter", "caddyfile", "--config", str(DEPLOY / "Caddyfile")],
        env={"PATH": PATH, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENT,
        check=False,
    )
    assert checked.returncode == 0, checked.stderr
    assert "not formatted" not in checked.stderr


# The image


def test_the_image_is_pinned_like_everything_else() -> None:
    """Same versions as in tests, PostgreSQL's driver among them."""
    pins = {
        name: set(PIN.findall((ROOT / f"requirements/{name}.txt").read_text(encoding="utf-8")))
        for name in ("run", "host", "test")
    }
    assert pins["run"] <= pins["host"] <= pins["test"]
    added = {one.partition("==")[0] for one in pins["host"] - pins["run"]}
    assert {"psycopg", "psycopg-binary", "redis"} <= added
    assert "--require-hashes -r requirements/host.txt" in text_of("Dockerfile")


def test_the_image_gets_what_it_copies_and_nothing_else() -> None:
    copied = [
        word.rstrip("/")
        for line in re.findall(r"^COPY (?!--from)(.*) \S+$", text_of("Dockerfile"), re.M)
        for word in line.split()
    ]
    assert [one for one in copied if not (ROOT / one).exists()] == []
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in ignored if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert {one.removeprefix("!") for one in rules if one.startswith("!")} == set(copied)


def command_of(dockerfile: str) -> list[str]:
    return json.loads(re.findall(r"^CMD (.*)$", dockerfile, re.M)[-1])


def test_the_images_command_listens_where_it_is_told(tmp_path: Path) -> None:
    text = text_of("Dockerfile")
    (port,) = free_ports(1)
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PORT": str(port),
        "TOOLGATE_SERVER__HOST": re.findall(r"TOOLGATE_SERVER__HOST=(\S+)", text)[0],
        "TOOLGATE_DATA": str(tmp_path / "data"),
        "TOOLGATE_ADMIN_KEY": ADMIN_KEY,
    }
    said = (tmp_path / "said").open("w")
    with said, subprocess.Popen(
        command_of(text), cwd=tmp_path, env=environment, stdout=said, stderr=said
    ) as process:  # fmt: skip
        try:
            wait_until_ready(f"http://127.0.0.1:{port}", process)
        finally:
            stop(process)
    assert process.returncode == 0, "the signal reached toolgate"
    assert "${PORT:-8080}" in command_of(text)[-1]


# Cloud Run


def service() -> dict[str, Any]:
    return yaml.safe_load(text_of("cloud-run.yaml"))


def container() -> dict[str, Any]:
    (only,) = service()["spec"]["template"]["spec"]["containers"]
    return only


def test_cloud_run_gets_its_secrets_from_elsewhere() -> None:
    env = {one["name"]: one for one in container()["env"]}
    for name in ("TOOLGATE_ADMIN_KEY", "TOOLGATE_DATABASE__URL"):
        assert env[name]["valueFrom"]["secretKeyRef"]["name"]
        assert "value" not in env[name]
    plain = {name: one["value"] for name, one in env.items() if "value" in one}
    settings = read_settings(environment=plain)
    assert settings.server.public_url == "https://tools.example.com"
    assert settings.server.trusted_proxies == ("169.254.0.0/16",)


def test_behind_cloud_run_a_stranger_is_known_by_the_address_that_google_tells() -> None:
    """With the headers that a container is sent there."""
    (proxies,) = [
        one["value"]
        for one in container()["env"]
        if one["name"] == "TOOLGATE_SERVER__TRUSTED_PROXIES"
    ]
    server = read_settings(environment={"TOOLGATE_SERVER__TRUSTED_PROXIES": proxies}).server
    told = [
        (b"x-forwarded-for", b"198.51.100.7, 203.0.113.12"),
        (b"forwarded", b'for="203.0.113.12";proto=https'),
    ]
    scope = {"type": "http", "client": ("169.254.1.1", 4711), "headers": told}
    assert Peers(server)(scope) == "203.0.113.12"
    assert Peers(server)(scope | {"client": ("192.0.2.1", 4711)}) == "192.0.2.1"


def test_cloud_runs_probes_are_answered(server: Any) -> None:
    """With the headers they send, on the port that the image opens."""
    port = container()["ports"][0]["containerPort"]
    assert f"EXPOSE {port}\n" in text_of("Dockerfile")
    for probe, path in (("startupProbe", "/readyz"), ("livenessProbe", "/healthz")):
        asked = container()[probe]["httpGet"]
        assert (asked["path"], asked["port"]) == (path, port)
        sent = {one["name"]: one["value"] for one in asked["httpHeaders"]}
        answer = httpx2.get(f"{server.url}{path}", headers=sent, trust_env=False)
        assert answer.status_code == 200

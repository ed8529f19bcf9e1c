"""`toolgate serve --https`: verified with its CA, refused without, trusted by nobody."""

import json
import shlex
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client
from tests.patience import PATIENT
from tests.transports.bridges import HELLO, MODES, Mode, bridged, wired

from toolgate.cli.trust import trust_command

CA = ".toolgate/tls/ca.pem"


def asking(ca: Path | None) -> httpx2.Client:
    verify = ssl.create_default_context(cafile=ca) if ca else True
    return httpx2.Client(verify=verify, trust_env=False, timeout=PATIENT)


def test_the_ca_verifies_it_on_every_name_and_a_second_start_uses_the_same(
    served: Any, tmp_path: Path
) -> None:
    with served("--https") as running:
        assert running.url.startswith("https://127.0.0.1:")
        port = running.url.rpartition(":")[2]
        with asking(tmp_path / CA) as client:
            for name in ("localhost", "127.0.0.1"):
                assert client.get(f"https://{name}:{port}/healthz").status_code == 200
        with asking(None) as client, pytest.raises(httpx2.ConnectError, match="CERTIFICATE_VERIFY"):
            client.get(f"{running.url}/healthz")
        # Somebody who forgot the s; the server goes on, and says nothing of it.
        with asking(None) as client, pytest.raises(httpx2.TransportError):
            client.get(f"http://127.0.0.1:{port}/healthz")
        with asking(tmp_path / CA) as client:
            assert client.get(f"{running.url}/healthz").status_code == 200
        ended = running.stop()
    assert (ended.code, ended.err) == (0, "")
    assert trust_command(tmp_path / CA) in ended.out
    assert "(it was not run):" in ended.out
    made = {one.name: one.read_bytes() for one in (tmp_path / ".toolgate/tls").iterdir()}
    with served("--https") as again, asking(tmp_path / CA) as client:
        assert client.get(f"{again.url}/healthz").status_code == 200
    assert {one.name: one.read_bytes() for one in (tmp_path / ".toolgate/tls").iterdir()} == made


def test_several_workers_share_the_certificate(served: Any, tmp_path: Path) -> None:
    with served("--https", "--workers", "2") as running:
        for _ in range(8):
            with asking(tmp_path / CA) as client:
                assert client.get(f"{running.url}/healthz").status_code == 200
        ended = running.stop()
    assert (ended.code, ended.err) == (0, "")


def test_it_works_on_ipv6(served: Any, tmp_path: Path) -> None:
    with served("--https", "--host", "::1") as running, asking(tmp_path / CA) as client:
        assert running.url.startswith("https://[::1]:")
        assert client.get(f"{running.url}/healthz").status_code == 200


def test_the_greetings_own_command_works(served: Any, tmp_path: Path) -> None:
    with served("--https", "--demo") as running:
        words = shlex.split(next(line for line in running.greeting.splitlines() if "curl" in line))
        ca, url = words[words.index("--cacert") + 1], words[words.index("--cacert") + 2]
        body = words[words.index("-d") + 1]
        with asking(tmp_path / ca) as client:
            bearer = {"Authorization": f"Bearer {running.key}"}
            answer = client.post(url, content=body, headers=bearer)
        assert answer.json()["displayName"] == "Jane Doe"


# Clients


@pytest.fixture
def secure(served: Any, tmp_path: Path) -> Iterator[tuple[str, str, Path]]:
    """Address, key and CA of a server."""
    with served("--https", "--demo") as running:
        yield running.url.replace("127.0.0.1", "localhost"), running.key, tmp_path / CA


@pytest.mark.anyio
async def test_the_python_client_and_the_bridge_connect(secure: tuple[str, str, Path]) -> None:
    url, key, ca = secure
    for mode in MODES:
        async with httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {key}"},
            verify=ssl.create_default_context(cafile=ca),
            trust_env=False,
            timeout=PATIENT,
        ) as http:
            transport = streamable_http_client(f"{url}/mcp", http_client=http)
            async with mcp.Client(transport, mode=mode) as client:
                await jane(client)
        await through_the_bridge(url, key, ca, mode)


async def through_the_bridge(url: str, key: str, ca: Path, mode: Mode) -> None:
    async with bridged(f"{url}/mcp", key, mode, "--ca", str(ca)) as client:
        await jane(client)


async def jane(client: mcp.Client) -> None:
    found = await client.call_tool("get_document", {"collection": "users", "document_id": "abc123"})
    assert found.structured_content is not None
    assert found.structured_content["displayName"] == "Jane Doe"


def told(url: str, key: str | None, *arguments: str) -> str:
    """The bridge's answer to a first request, which is also on standard error."""
    with wired(url, key, *arguments) as wire:
        wire.send(id=1, method="initialize", params=HELLO)
        message = wire.answer()["error"]["message"]
        code, out, err = wire.ended()
    assert (code, out) == (0, b"")
    assert message in err
    assert "Traceback" not in err
    return message


def test_the_bridge_says_what_is_wrong_with_tls(
    secure: tuple[str, str, Path], tmp_path: Path
) -> None:
    from toolgate.certificates import ALWAYS, ensure

    url, key, _ = secure
    untrusted = told(url, key)
    assert "is not trusted" in untrusted
    assert "--ca FILE" in untrusted
    other = ensure(tmp_path / "other", ALWAYS).files.ca
    assert "name the right file with --ca" in told(url, key, "--ca", str(other))
    assert "write https://" in told(url.replace("https:", "http:"), key)


def test_https_to_a_plain_server_is_told(served: Any) -> None:
    with served() as running:
        message = told(running.url.replace("http:", "https:"), running.key)
    assert "does not speak HTTPS" in message
    assert f"--url {running.url}/mcp" in message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--ca", "ca.pem"), "--ca is for use with --url"),
        (("--url", "http://localhost:1", "--ca", "ca.pem"), "--ca is for HTTPS"),
        (
            ("--url", "https://localhost:1", "--ca", "gone.pem"),
            "gone.pem is not a file with a cert",
        ),
    ],
)
def test_a_ca_that_makes_no_sense_is_refused(cli: Any, arguments: Any, words: str) -> None:
    ended = cli("mcp", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert words in ended.err
    assert ended.err.count("\n") == 1


# Beside the server


def test_connect_prints_https_and_the_ca(
    cli: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TOOLGATE_SERVER__HTTPS", "true")
    code = cli("connect", "claude-code")
    assert "https://127.0.0.1:8765/mcp" in code.out
    assert f"NODE_EXTRA_CA_CERTS={tmp_path / CA}" in code.err
    for client in ("cursor", "vscode"):
        ended = cli("connect", client)
        assert '"url": "https://127.0.0.1:8765/mcp"' in ended.out
        assert f"has to trust {tmp_path / CA}" in ended.err


def test_claude_desktop_gets_a_bridge_to_another_machine(cli: Any) -> None:
    url = "https://gate.example"
    entry = cli("connect", "claude-desktop", "--url", url, "--key", "any-key", "--json").json
    server = entry["config"]["mcpServers"]["toolgate"]
    assert server["args"] == ["mcp", "--url", "https://gate.example/mcp"]
    assert server["env"] == {"TOOLGATE_KEY": "any-key"}


def checked(cli: Any) -> dict[str, str]:
    report = json.loads(cli("doctor", "--json").out)
    return next(one for one in report if one["check"] == "certificate")


def test_doctor_looks_at_the_certificate(
    cli: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from toolgate.certificates import ALWAYS, ensure

    monkeypatch.setenv("TOOLGATE_SERVER__HTTPS", "true")
    assert "created at the next start" in checked(cli)["says"]
    files = ensure(tmp_path / ".toolgate", ALWAYS).files
    good = checked(cli)
    assert (good["state"], "for localhost, 127.0.0.1, ::1." in good["says"]) == ("ok", True)
    monkeypatch.setenv("TOOLGATE_SERVER__HOST", "192.0.2.1")
    other = checked(cli)
    assert other["state"] == "warn"
    assert "192.0.2.1" in other["says"]
    files.key.chmod(0o644)
    assert (checked(cli)["state"], "chmod 600" in checked(cli)["says"]) == ("fail", True)


def test_each_system_has_its_command() -> None:
    ca = Path("/a b/ca.pem")
    assert "update-ca-certificates" in trust_command(ca, "linux", "ubuntu debian")
    assert "update-ca-certificates" in trust_command(ca, "linux", "linuxmint ubuntu debian")
    assert "update-ca-trust" in trust_command(ca, "linux", "fedora")
    assert "update-ca-trust" in trust_command(ca, "linux", "rocky rhel centos fedora")
    assert trust_command(ca, "linux", "arch") == "sudo trust anchor --store '/a b/ca.pem'"
    assert "add-trusted-cert" in trust_command(ca, "darwin")
    assert trust_command(ca, "win32") == 'certutil -user -addstore Root "/a b/ca.pem"'
    assert "'/a b/ca.pem'" in trust_command(ca, "darwin")

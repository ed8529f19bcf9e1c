"""What may be asked for before a credential is known is counted by peer."""

import time

import pytest

from toolgate.gate.errors import RateLimited
from toolgate.gate.limits import Limits
from toolgate.gate.principal import Role, of_role
from toolgate.sections import LimitSettings

pytestmark = pytest.mark.anyio

START = 1_800_000_000.0  # the beginning of a minute


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [START]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


async def test_one_peer_uses_up_neither_anothers_limit_nor_that_of_another_purpose() -> None:
    peers = Limits(LimitSettings()).peers
    for _ in range(3):
        await peers.admit("oauth-register", "192.0.2.1", 3)
    with pytest.raises(RateLimited):
        await peers.admit("oauth-register", "192.0.2.1", 3)
    await peers.admit("oauth-register", "192.0.2.2", 3)
    await peers.admit("oauth-token", "192.0.2.1", 3)


async def test_the_limits_of_strangers_stay_on_where_callers_have_none() -> None:
    limits = Limits(LimitSettings(calls_per_minute=0, refusals_per_minute=1))
    await limits.peers.admit("oauth-register", "192.0.2.1", 1)
    with pytest.raises(RateLimited) as refused:
        await limits.peers.admit("oauth-register", "192.0.2.1", 1)
    assert refused.value.retry_after == 60
    who = of_role(Role.USER, "key:1")
    limits.count_refusal(who)
    with pytest.raises(RateLimited):
        limits.count_refusal(who)


async def test_asking_whether_there_is_room_counts_nothing(clock: list[float]) -> None:
    peers = Limits(LimitSettings()).peers
    for _ in range(5):
        await peers.check("guess", "192.0.2.1", 1)
    await peers.admit("guess", "192.0.2.1", 1)
    with pytest.raises(RateLimited):
        await peers.check("guess", "192.0.2.1", 1)
    clock[0] += 120
    await peers.check("guess", "192.0.2.1", 1)

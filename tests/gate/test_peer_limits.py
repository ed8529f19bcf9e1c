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
    strangers = Limits(LimitSettings()).strangers
    for _ in range(3):
        await strangers.admit("oauth-register", "192.0.2.1", 3)
    with pytest.raises(RateLimited):
        await strangers.admit("oauth-register", "192.0.2.1", 3)
    await strangers.admit("oauth-register", "192.0.2.2", 3)
    await strangers.admit("oauth-token", "192.0.2.1", 3)


async def test_the_limits_of_strangers_stay_on_where_callers_have_none() -> None:
    limits = Limits(LimitSettings(calls_per_minute=0, refusals_per_minute=1))
    await limits.strangers.admit("oauth-register", "192.0.2.1", 1)
    with pytest.raises(RateLimited) as refused:
        await limits.strangers.admit("oauth-register", "192.0.2.1", 1)
    assert refused.value.retry_after == 60
    who = of_role(Role.USER, "key:1")
    limits.refused(who)
    with pytest.raises(RateLimited):
        limits.refused(who)


async def test_asking_whether_there_is_room_counts_nothing(clock: list[float]) -> None:
    strangers = Limits(LimitSettings()).strangers
    for _ in range(5):
        await strangers.check("guess", "192.0.2.1", 1)
    await strangers.admit("guess", "192.0.2.1", 1)
    with pytest.raises(RateLimited):
        await strangers.check("guess", "192.0.2.1", 1)
    clock[0] += 120
    await strangers.check("guess", "192.0.2.1", 1)

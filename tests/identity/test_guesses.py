"""Wrong credentials are counted together, wherever they are tried and however many come at once."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.identity.oauth.flow import Flow, registered
from tests.transports.conftest import ADMIN_KEY, Web, opened_web

from toolgate.gate.counting import Counter
from toolgate.gate.limits import Limits
from toolgate.identity.credentials import Known

pytestmark = pytest.mark.anyio

MOST = 20
LIMITS = {"limits__guesses_per_minute": MOST}


async def status(http: httpx2.AsyncClient, credential: str) -> int:
    headers = {"Authorization": f"Bearer {credential}"}
    return (await http.get("/v1/tools", headers=headers)).status_code


class Slow:
    """A database that answers nobody until everybody was refused or waits for it."""

    def __init__(self, web: Web, monkeypatch: pytest.MonkeyPatch, together: int) -> None:
        self.asked: list[str] = []
        self.answers: list[int] = []
        self._together = together
        self._all = asyncio.Event()
        self._identify = web.kit.app.credentials.identify
        monkeypatch.setattr(web.kit.app.credentials, "identify", self.identify)

    async def identify(self, credential: str, *given: Any) -> Known | None:
        self.asked.append(credential)
        self._look()
        await self._all.wait()
        return await self._identify(credential, *given)

    async def send(self, http: httpx2.AsyncClient, credential: str) -> None:
        self.answers.append(await status(http, credential))
        self._look()

    def _look(self) -> None:
        if len(self.asked) + len(self.answers) >= self._together:
            self._all.set()


async def in_redis(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in another place, so that to ask how many there were takes a turn of the loop."""
    limits: Limits = web.kit.app.gate.limits
    counter = Counter()

    class Shared:
        async def hit(self, item: Any, *key: str, cost: int = 1) -> bool:
            await asyncio.sleep(0)
            return counter.hit(key, item.amount, cost) is None

        async def test(self, item: Any, *key: str, cost: int = 1) -> bool:
            await asyncio.sleep(0)
            return counter.test(key, item.amount - cost + 1) is None

    monkeypatch.setattr(limits.strangers, "_shared", Shared())


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("times", [1, 3])
async def test_guesses_that_come_at_once_do_not_pass_the_limit_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool, times: int
) -> None:
    """Neither with many, nor with each of them more than once."""
    async with opened_web(tmp_path, **LIMITS) as web, web.client(None) as http:
        if shared:
            await in_redis(web, monkeypatch)
        tries = [f"guess-{number}" for number in range(100) for _ in range(times)]
        slow = Slow(web, monkeypatch, len(tries))
        await asyncio.gather(*(slow.send(http, one) for one in tries))
        assert len(set(slow.asked)) == MOST
        assert len(slow.asked) == MOST * times
        assert sorted(slow.answers) == [401] * MOST * times + [429] * (100 - MOST) * times
        assert await status(http, "one-more") == 429


async def test_one_key_that_comes_many_times_at_once_is_one_guess(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened_web(tmp_path, **LIMITS) as web, web.client(None) as http:
        slow = Slow(web, monkeypatch, 150)
        good, old = [web.keys["user"]] * 100, ["an-old-key"] * 50
        await asyncio.gather(*(slow.send(http, one) for one in good + old))
        assert sorted(slow.answers) == [200] * 100 + [401] * 50
        others = [await status(http, f"guess-{number}") for number in range(MOST)]
        assert others == [401] * (MOST - 1) + [429], "the old one was counted once"


async def test_a_look_up_that_fails_is_no_guess_and_holds_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened_web(tmp_path, **LIMITS) as web, web.client(None) as http:
        with monkeypatch.context() as failing:

            async def fails(*_: Any) -> None:
                raise asyncio.CancelledError

            failing.setattr(web.kit.app.credentials, "identify", fails)
            for number in range(MOST + 1):
                with pytest.raises(asyncio.CancelledError):
                    await status(http, f"guess-{number}")
        assert await status(http, web.keys["user"]) == 200


async def test_header_sign_in_and_client_id_are_one_count(tmp_path: Path) -> None:
    async with opened_web(tmp_path, **LIMITS) as web, web.client(None) as http:
        for number in range(8):
            assert await status(http, f"header-{number}") == 401
        for number in range(6):
            wrong = await (await registered(http)).sign_in(f"typed-{number}")
            assert wrong.status_code == 403
            assert (await Flow(http, f"client-{number}").authorize()).status_code == 400
        assert await status(http, web.keys["user"]) == 429
        assert (await (await registered(http)).sign_in(ADMIN_KEY)).status_code == 429
        assert (await Flow(http, ADMIN_KEY).authorize()).status_code == 429

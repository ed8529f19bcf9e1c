"""Wrong credentials are counted together, wherever they are tried and however many come at once."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.identity.oauth.flow import Flow, registered
from tests.transports.conftest import ADMIN_KEY, Web, opened_web

from toolgate.gate.limits import Limits
from toolgate.gate.principal import Role
from toolgate.gate.sliding_window import WindowCounter
from toolgate.identity.credentials import ValidCredential

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

    async def identify(self, credential: str, *given: Any) -> ValidCredential | None:
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
    counter = WindowCounter()

    class Shared:
        async def hit(self, item: Any, *key: str, cost: int = 1) -> bool:
            await asyncio.sleep(0)
            return counter.hit(key, item.amount, cost) is None

        async def test(self, item: Any, *key: str, cost: int = 1) -> bool:
            await asyncio.sleep(0)
            return counter.test(key, item.amount - cost + 1) is None

    monkeypatch.setattr(limits.peers, "_shared", Shared())


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
            client = Flow(http, f"as-long-as-a-key-{number}")
            assert (await client.authorize()).status_code == 400
        assert await status(http, web.keys["user"]) == 429
        assert (await (await registered(http)).sign_in(ADMIN_KEY)).status_code == 429
        assert (await Flow(http, ADMIN_KEY).authorize()).status_code == 429


async def guess(http: httpx2.AsyncClient) -> None:
    """A neighbour uses up all the guesses there are."""
    for number in range(MOST):
        assert await status(http, f"guess-{number}") == 401
    assert await status(http, "one-more") == 429


async def test_a_token_that_was_handed_out_works_where_a_neighbour_guesses(tmp_path: Path) -> None:
    async with opened_web(tmp_path, **LIMITS) as web, web.client(None) as http:
        flow = await registered(http)
        code = await flow.code(web.keys["user"])
        await guess(http)
        first = (await flow.exchange(code)).json()
        assert await status(http, first["access_token"]) == 200
        renewed = (await flow.refresh(first["refresh_token"])).json()
        assert await status(http, renewed["access_token"]) == 200


async def test_a_token_that_was_handed_to_another_peer_does_not(tmp_path: Path) -> None:
    async with opened_web(tmp_path, **LIMITS) as web, web.client(None) as http:
        await guess(http)
        transport = httpx2.ASGITransport(web.app, client=("127.0.0.9", 1))
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as other:
            token = (await (await registered(other)).tokens(web.keys["user"]))["access_token"]
            assert await status(other, token) == 200
        assert await status(http, token) == 429


async def test_genuine_credentials_that_ended_are_no_guesses(tmp_path: Path) -> None:
    async with opened_web(tmp_path, **LIMITS) as web, web.client(None) as http:
        keys, flow = web.kit.app.keys, await registered(http)
        tokens = [await flow.tokens(web.keys["user"]) for _ in range(3)]
        for one in tokens:
            await flow.http.post("/revoke", data={"token": one["refresh_token"]})
        web.kit.app.credentials.forget()
        ended = [one["access_token"] for one in tokens]
        for _ in range(MOST):
            made = await keys.create(role=Role.USER)
            await keys.revoke(made.id)
            ended.append(made.key)
        assert {await status(http, one) for one in ended * 2} == {401}
        await guess(http)
        assert {await status(http, one) for one in ended} == {429}, "past the limit, like any"


async def test_genuine_keys_are_no_guesses_where_they_are_good_for_nothing(tmp_path: Path) -> None:
    """On the sign-in page those of agents, as a client id those of users."""
    async with opened_web(tmp_path, **LIMITS) as web, web.client(None) as http:
        for _ in range(MOST):
            assert (await (await registered(http)).sign_in(web.keys["pm"])).status_code == 403
            assert (await Flow(http, web.keys["user"]).authorize()).status_code == 400
        await guess(http)


async def test_what_has_no_keys_form_is_no_guess_as_a_client_id(tmp_path: Path) -> None:
    async with opened_web(tmp_path, **LIMITS) as web, web.client(None) as http:
        for number in range(2 * MOST):
            assert (await Flow(http, f"wrong{number}").authorize()).status_code == 400
            assert (await Flow(http, f"wrong{number}").exchange("x")).status_code == 400
        assert (await (await registered(http)).sign_in(ADMIN_KEY)).status_code == 303
        assert (await Flow(http, ADMIN_KEY).authorize()).status_code == 303


async def test_without_a_configured_key_only_the_form_of_made_ones_is_tried(tmp_path: Path) -> None:
    settings = LIMITS | {"admin_key": None}
    async with opened_web(tmp_path, **settings) as web, web.client(None) as http:
        for number in range(2 * MOST):
            assert (await Flow(http, f"as-long-as-a-key-{number}").authorize()).status_code == 400
        made = await web.kit.app.keys.create(role=Role.ADMIN)
        assert (await Flow(http, made.key).authorize()).status_code == 303

"""Turns at the mail server: a campaign leaves one to single mails, and waiting ends in words."""

from typing import Any

import anyio
import pytest

from toolgate.packs.backend.mail.smtp_pool import NoTurn, Pool

pytestmark = pytest.mark.anyio


class Client:
    is_connected = True

    def close(self) -> None:
        self.is_connected = False


async def connect() -> Any:
    return Client()


@pytest.mark.parametrize(("size", "under_way"), [(4, 3), (2, 1)])
async def test_a_campaign_leaves_a_turn_to_a_single_mail(size: int, under_way: int) -> None:
    pool, held, begun = Pool(connect, size, seconds=60), anyio.Event(), list[int]()

    async def of_campaign(number: int) -> None:
        async with pool.connection(of_campaign=True):
            begun.append(number)
            await held.wait()

    async with anyio.create_task_group() as tasks:
        for number in range(64):
            tasks.start_soon(of_campaign, number)
        await anyio.wait_all_tasks_blocked()
        assert len(begun) == under_way
        async with pool.connection():
            pass
        held.set()
    assert len(begun) == 64


async def test_a_single_mail_that_waits_too_long_is_told_so() -> None:
    pool = Pool(connect, 1, seconds=0)
    async with pool.connection(of_campaign=True):
        with pytest.raises(NoTurn):
            async with pool.connection():
                raise AssertionError("there is no turn")
    async with pool.connection():
        pass

"""A campaign through the real SMTP client to a real SMTP server, killed with -9 on the way."""

from pathlib import Path

import pytest
from tests.effort import effort
from tests.packs.backend.large_campaign import (
    CONNECTIONS,
    Campaign,
    address,
    send_with_kills,
    store_users,
)
from tests.smtp_counter import counting_server

pytestmark = pytest.mark.anyio

COUNT = effort(600, 100_000)
KILLS = effort(1, 3)
MORE_MEGABYTES = 60


@pytest.mark.timeout(3600)  # here, it counts more than that of a database's fixture
async def test_everybody_gets_exactly_one(tmp_path: Path, database_url: str) -> None:
    await store_users(tmp_path / "data", database_url, COUNT)
    revoked = COUNT - 5
    with counting_server(tmp_path) as mail:
        campaign = Campaign(tmp_path / "data", database_url, mail)
        ended = send_with_kills(campaign, KILLS, COUNT, revoke=revoked)
        taken = mail.taken()
    delivery = ended["delivery"]
    print(delivery, campaign.told, f"{campaign.rest:.0f} to {campaign.peak:.0f} MB")
    assert ended["status"] == "sent"
    assert max(taken.values()) == 1
    assert address(revoked) not in taken
    # Who was handed over at the very moment of a kill may have got none, and then that is told.
    missing = {address(one) for one in range(COUNT)} - taken.keys() - {address(revoked)}
    unknown = delivery.get("unknown", 0)
    assert len(missing) <= unknown <= KILLS * CONNECTIONS
    assert (sum(delivery.values()), delivery["skipped"]) == (COUNT, 1)
    done = [one for one, _ in campaign.told]
    assert done == sorted(set(done)), "progress is told, and goes on after a kill"
    assert {total for _, total in campaign.told} == {COUNT}
    assert campaign.peak - campaign.rest < MORE_MEGABYTES

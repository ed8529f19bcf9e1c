"""A server that is killed with -9 while Firebase has messages of it: none is sent twice."""

import contextlib
import http.client
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.faults.server import Running, served, until
from tests.packs.backend.fcm_server import UNAVAILABLE, UNREGISTERED, FcmServer, fcm_server
from tests.packs.backend.test_push_delivery import subscribe, tokens_left
from tests.patience import PATIENT

from toolgate.testing import opened_kit

DEAD, BUSY = ("t0003", "t0004"), "t0007"
CALL: dict[str, Any] = {"notification": {"title": "Hello", "body": "World"}}


class Site:
    """A database with tokens in it, and servers on it that send to one Firebase."""

    def __init__(self, data: Path, database: str, fcm: FcmServer) -> None:
        fcm.of_token = {**dict.fromkeys(DEAD, UNREGISTERED), BUSY: UNAVAILABLE}
        fcm.headers["retry-after"] = "60"
        self.data, self.fcm = data, fcm
        self.settings: dict[str, Any] = {"database__url": database, **fcm.settings()}

    async def _store(self, tokens: list[str]) -> None:
        async with opened_kit(self.data, packs__enabled=["backend"], **self.settings) as kit:
            await subscribe(kit, tokens, tags=[])

    async def _left(self) -> list[str]:
        async with opened_kit(self.data, packs__enabled=["backend"], **self.settings) as kit:
            return await tokens_left(kit)

    def store(self, count: int) -> list[str]:
        tokens = [f"t{number:04}" for number in range(count)]
        anyio.run(self._store, tokens)
        return tokens

    def left(self) -> list[str]:
        return anyio.run(self._left)

    def served(self) -> Any:
        more = {"packs__enabled": "backend", "workflows__lease_seconds": "10"}
        return served(self.data, **self.settings, **more)


@pytest.fixture
def site(tmp_path: Path, database_url: str) -> Any:
    with fcm_server() as fcm:
        yield Site(tmp_path / "data", database_url, fcm)


def kill_while_held(running: Running, fcm: FcmServer) -> None:
    """Kill it once Firebase has a message that it does not answer."""
    assert fcm.held.wait(PATIENT)
    running.kill()
    fcm.hold_after = None


def test_a_notification_to_many_goes_on_behind_the_batch_that_was_on_its_way(site: Site) -> None:
    tokens, fcm = site.store(1201), site.fcm
    fcm.hold_after = 700

    def call(running: Running) -> None:
        with contextlib.suppress(http.client.HTTPException, OSError):
            running.call("send_notification", **CALL)

    with site.served() as running:
        caller = threading.Thread(target=call, args=[running])
        caller.start()
        kill_while_held(running, fcm)
        caller.join()
    with site.served() as running:
        again = running.call("send_notification", **CALL)
    # The caller's second try is answered with what came of the first.
    assert again.status == 200, again.text
    told = {"subscribers": 1201, "batches": 3, "sent": 497 + 201, "deleted": 2}
    assert again.body == {**told, "failed": {"INTERRUPTED": 500, "UNAVAILABLE": 1}}
    assert set(fcm.sent.values()) == {1}, "none twice"
    missing = set(tokens) - fcm.sent.keys() - {*DEAD, BUSY}
    assert missing <= set(tokens[500:1000]), "only of the batch that is told as interrupted"
    assert site.left() == [one for one in tokens if one not in DEAD]


def test_a_campaign_by_push_leaves_unknown_only_what_was_on_its_way(site: Site) -> None:
    tokens, fcm = site.store(350), site.fcm
    fcm.hold_after = 150
    with site.served() as running:
        given = {"name": "News", "subject": "News", "type": "push", "all": True}
        made = running.call("create_campaign", **given)
        assert made.body["status"] == "processing", made.text
        kill_while_held(running, fcm)
    with site.served() as running:

        def campaign() -> dict[str, Any]:
            return running.call("list_campaigns", id=made.body["id"]).body["campaign"]

        until(lambda: campaign()["status"] != "processing")
        done = campaign()
    delivery = done["delivery"]
    assert (done["status"], sum(delivery.values())) == ("sent", 350)
    assert set(fcm.sent.values()) == {1}, "none twice"
    missing = set(tokens) - fcm.sent.keys() - {*DEAD, BUSY}
    assert len(missing) <= delivery["unknown"] <= 64, "what was handed over, and not more"
    assert delivery["refused"] == 3
    assert site.left() == [one for one in tokens if one not in DEAD]

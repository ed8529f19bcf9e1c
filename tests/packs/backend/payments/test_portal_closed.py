"""Where nothing may be cancelled, a link to the portal shows and does not cancel: real servers."""

import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from tests import preloaded
from tests.faults.server import KEY, Running, served, until
from tests.identity.oauth.flow import PREFIX, hidden, query_of, registered
from tests.packs.backend.payments.records import keep, subscription

from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio

BACKEND = {"packs__enabled": "backend"}
SWITCHED_OFF = "Nothing can be changed here now: changes are switched off. Try again later."
ONLY_SHOWS = "This link shows the subscription. Nothing can be cancelled with it."
PATH = "/backend-manager/payments/portal"


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """The folder of a server where Anna pays."""
    async with opened_kit(tmp_path, packs__enabled=["backend"]) as kit:
        await keep(kit, "anna", subscription())
    return tmp_path


@pytest.fixture
def running(data: Path) -> Iterator[Running]:
    with served(data, **BACKEND) as started:
        yield started


def link(running: Running, key: str = KEY) -> str:
    """The path of a new link."""
    answer = running.ask("POST", PATH, {"uid": "anna"}, Authorization=f"Bearer {key}")
    assert answer.status == 200, answer.text
    url: str = answer.body["url"]
    return urlsplit(url).path


def is_pending(running: Running) -> bool:
    told = running.call("get_subscription", uid="anna")
    return told.body["subscription"]["cancellation"]["pending"]


def only_shows(running: Running, path: str, status: int, why: str) -> None:
    """The page is there without its form; a POST is refused with the same words."""
    page = running.ask("GET", path)
    assert (page.status, "Premium" in page.text, why in page.text) == (200, True, True)
    assert "<form" not in page.text
    refused = running.ask("POST", path)
    assert (refused.status, why in refused.text) == (status, True), refused.text
    assert refused.text.startswith("<!doctype html>")


def cancels(running: Running, path: str) -> None:
    assert "<form" in running.ask("GET", path).text
    assert running.ask("POST", path).status == 303
    assert is_pending(running)


@pytest.mark.parametrize(
    "off",
    [{"policy__read_only": "true"}, {"policy__disabled": "cancel_subscription"}],
    ids=str,
)
async def test_what_is_off_is_off_on_the_page(data: Path, off: dict[str, str]) -> None:
    with served(data, **BACKEND) as running:
        before = link(running)
        running.stop()
    with served(data, **BACKEND, **off) as running:
        only_shows(running, before, 503, SWITCHED_OFF)
        assert not is_pending(running)
        made_now = link(running)
        only_shows(running, made_now, 403, ONLY_SHOWS)
        running.stop()
    with served(data, **BACKEND) as running:
        only_shows(running, made_now, 403, ONLY_SHOWS)
        assert not is_pending(running)
        cancels(running, before)


async def test_a_whole_pack_that_is_off(data: Path) -> None:
    with served(data, **BACKEND) as running:
        before = link(running)
        running.stop()
    with served(data, **BACKEND, policy__disabled="backend") as running:
        assert running.ask("POST", before).status == 503
        running.stop()
    with served(data, **BACKEND) as running:
        assert not is_pending(running)


def switch(data: Path, to: str) -> None:
    command = [sys.executable, "-m", "toolgate", "switch", to, "cancel_subscription"]
    environment = {"TOOLGATE_DATA": str(data), "TOOLGATE_PACKS__ENABLED": "backend"}
    done = preloaded.run(command, env=environment, cwd=data, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


async def test_a_tool_that_is_switched_off_while_the_server_runs(
    data: Path, running: Running
) -> None:
    before = link(running)
    switch(data, "off")
    until(lambda: "<form" not in running.ask("GET", before).text)
    only_shows(running, before, 503, SWITCHED_OFF)
    only_shows(running, link(running), 403, ONLY_SHOWS)
    assert not is_pending(running)
    switch(data, "on")
    until(lambda: "<form" in running.ask("GET", before).text)
    cancels(running, before)


async def token_of(running: Running, access: dict[str, str]) -> str:
    """What a client gets that an admin allowed to act for them."""
    url = f"http://127.0.0.1:{running.port}"
    async with httpx2.AsyncClient(base_url=url, trust_env=False) as http:
        flow = await registered(http)
        page = await flow.consent_page(KEY)
        form = {**hidden(page), "decision": "allow", **access}
        sent = await http.post(f"{PREFIX}/consent", data=form)
        return (await flow.exchange(query_of(sent)["code"])).json()["access_token"]


async def test_a_grant_that_reads_only_makes_links_that_show_only(running: Running) -> None:
    reading = await token_of(running, {"access": "read"})
    only_shows(running, link(running, reading), 403, ONLY_SHOWS)
    assert not is_pending(running)
    everything = await token_of(running, {})
    cancels(running, link(running, everything))


async def test_a_rule_that_keeps_somebody_from_cancelling(data: Path) -> None:
    rule = 'forbid (principal, action == Action::"call", resource) when '
    rule += '{ resource.name == "cancel_subscription" };'
    rules = data / "rules"
    rules.mkdir()
    (rules / "more.cedar").write_text(f'@id("no-cancelling")\n{rule}\n')
    with served(data, **BACKEND, policy__folder=str(rules)) as running:
        only_shows(running, link(running), 403, ONLY_SHOWS)
        assert not is_pending(running)


async def test_a_forged_right_to_cancel_is_no_link(running: Running) -> None:
    reading = await token_of(running, {"access": "read"})
    path = link(running, reading)
    for at in range(len(PATH) + 1, len(path), 7):
        forged = path[:at] + ("A" if path[at] != "A" else "B") + path[at + 1 :]
        answer = running.ask("POST", forged)
        assert answer.status in {404, 429}, answer.text
    assert not is_pending(running)


async def test_refusals_on_the_page_are_audited(data: Path) -> None:
    with served(data, **BACKEND, policy__disabled="cancel_subscription") as running:
        assert running.ask("POST", link(running), **{"X-Request-Id": "portal-1"}).status == 403
        running.stop()
    async with opened_kit(data, packs__enabled=["backend"]) as kit:
        rows = [row for row in await kit.audit_rows() if row["request_id"] == "portal-1"]
    assert [(row["status"], row["decision"]) for row in rows] == [("error", "deny")]

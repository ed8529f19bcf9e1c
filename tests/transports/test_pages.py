"""Pages of a pack: addresses without a credential, bounded, told in a sentence, audited."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.transports.conftest import Web, opened_web

from toolgate.gate.live_switches import switch
from toolgate.gate.offer import BadOffer, check_offer
from toolgate.gate.pages import HTML
from toolgate.pack import (
    SENTENCE,
    Context,
    Effect,
    Family,
    GateError,
    Input,
    InvalidArguments,
    NoArguments,
    Offer,
    Output,
    Pack,
    Page,
    PageAnswer,
    PageRequest,
    Problem,
    Role,
    Route,
    Set,
    Site,
    Target,
    outside_caller,
)

pytestmark = pytest.mark.anyio

HOOKS = Pack("hooks", SENTENCE, "What others tell us.")
family = Family("hooks", HOOKS)
MOST = 100


class Pair(Output):
    """Two values."""

    items: list[int]
    more: str


@family.tool("hooks.list", role=Role.ADMIN, effect=Effect.READ, title="List",
             route=Route("/hooks/list", body="items"))  # fmt: skip
async def list_hooks(ctx: Context[Site], args: NoArguments) -> Pair:
    """List them."""
    return Pair(items=[1, 2], more="text")


class MaybeCount(Input):
    """Whether to count."""

    count: bool = False


class Told(Output):
    """What was told."""

    text: str


def counts(args: MaybeCount) -> bool:
    return args.count


@family.tool("hooks.count", role=Role.ADMIN, effect=Effect.READ, title="Count",
             writes=[Target.DOCUMENTS], writes_if=counts)  # fmt: skip
async def count_hooks(ctx: Context[Site], args: MaybeCount) -> Told:
    """Count them, and note it if asked to."""
    if args.count:
        await ctx.world.documents.write(ctx.tx, Set("counts", "one", {"counted": True}))
    return Told(text="written" if args.count else "read")


async def take(site: Site, request: PageRequest) -> PageAnswer:
    if request.body == b"bad":
        raise InvalidArguments([Problem("body", "value", "the body is bad")])
    if request.body == b"broken":
        raise RuntimeError("a secret: hunter2")
    async with request.transaction("signed", outside_caller("webhook:test")) as tx:
        await site.documents.write(tx, Set("told", request.parameters["name"], {"told": True}))
    text = f"{request.parameters['name']} {request.query.get('a')} {request.headers['x-a']}"
    return PageAnswer(200, text.encode(), "text/plain", {"x-b": "b"})


@asynccontextmanager
async def open_site(site: Site, settings: Any) -> AsyncGenerator[Site]:
    yield site


def tell(site: Site, problem: GateError) -> PageAnswer:
    return PageAnswer(200, f"<p>{problem.message}".encode(), HTML)


async def look(site: Site, request: PageRequest) -> PageAnswer:
    return PageAnswer(200, b"looked")


OFFER = Offer(
    pack=HOOKS,
    tools=tuple(family.tools),
    open=open_site,
    pages=(
        Page(path="/hooks/{name}/shown", methods=("POST",), handler=take, tell=tell,
             acts_as=("hooks.count",)),
        Page(path="/hooks/{name}/look", methods=("GET",), handler=look, acts_as=("hooks.count",)),
        Page(path="/hooks/{name}/in", methods=("POST",), handler=take, body_bytes=MOST,
             calls_per_minute=20),
    ),
)  # fmt: skip


@pytest.fixture
async def hooked(tmp_path: Path) -> AsyncIterator[Web]:
    async with opened_web(tmp_path, plugins=[OFFER]) as opened:
        yield opened


async def test_a_page_is_answered_without_a_credential_and_audited(hooked: Web) -> None:
    async with hooked.client(None) as client:
        answer = await client.post("/hooks/one/in?a=1&a=2", content=b"x", headers={"X-A": "h"})
    assert (answer.status_code, answer.text) == (200, "one 1 h")
    assert answer.headers["x-b"] == "b"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    (row,) = await hooked.audit_rows(answer.headers["x-request-id"])
    assert (row["tool_name"], row["rule"]) == ("/hooks/{name}/in", "signed")
    assert row["subject_id"] == "webhook:test"


async def test_what_goes_wrong_is_one_sentence(hooked: Web) -> None:
    async with hooked.client(None, **{"X-A": "h"}) as client:
        bad = await client.post("/hooks/one/in", content=b"bad")
        assert (bad.status_code, bad.json()) == (400, {"error": "the body is bad"})
        broken = await client.post("/hooks/one/in", content=b"broken")
        assert broken.status_code == 500
        assert "hunter2" not in broken.text
        large = await client.post("/hooks/one/in", content=b"x" * (MOST + 1))
        assert large.status_code == 413
        got = await client.get("/hooks/one/in")
        assert (got.status_code, got.headers["allow"]) == (405, "POST")
        other = await client.post("/hooks/one/other")
        assert other.status_code == 401


async def test_one_peer_may_ask_only_so_often(hooked: Web) -> None:
    async with hooked.client(None, **{"X-A": "h"}) as client:
        codes = [(await client.post("/hooks/one/in")).status_code for _ in range(21)]
    assert codes == [200] * 20 + [429]


async def test_a_route_can_send_one_field_of_the_answer(hooked: Web) -> None:
    async with hooked.client() as client:
        assert (await client.get("/hooks/list")).json() == [1, 2]
        whole = await client.post("/v1/tools/hooks.list", json={})
        assert whole.json() == {"items": [1, 2], "more": "text"}
        described = (await client.get("/openapi.json")).json()["paths"]
    bare = described["/hooks/list"]["get"]["responses"]["200"]["content"]["application/json"]
    assert bare["schema"]["type"] == "array"


async def test_arguments_make_a_reading_tool_write(hooked: Web) -> None:
    reading = await hooked.kit.call("hooks.count")
    writing = await hooked.kit.call("hooks.count", count=True)
    assert (reading.body, writing.body) == ({"text": "read"}, {"text": "written"})
    tool = hooked.kit.app.gate.catalogue.find("hooks.count")
    assert tool is not None
    assert tool.annotations["readOnlyHint"] is True


async def test_then_it_is_decided_as_a_write(tmp_path: Path) -> None:
    async with opened_web(tmp_path, plugins=[OFFER], policy__read_only=True) as web:
        assert (await web.kit.call("hooks.count")).body == {"text": "read"}
        refused = await web.kit.call("hooks.count", count=True)
        assert refused.status == 403
        assert "read-only" in str(refused.body)
        *_, row = await web.kit.audit_rows()
    assert (row["tool_name"], row["rule"]) == ("hooks.count", "read-only-gate")


async def test_a_dry_run_of_it_stores_nothing(hooked: Web) -> None:
    counts = hooked.kit.app.documents.of("hooks")
    assert (await hooked.kit.call("hooks.count", dry_run=True, count=True)).error is None
    assert await counts.get("counts", "one") is None
    await hooked.kit.call("hooks.count", count=True)
    assert await counts.get("counts", "one") == {"counted": True}


async def told_at(web: Web) -> list[str]:
    store = web.kit.app.documents.of("hooks")
    return [name for name in ("in", "shown") if await store.get("told", name)]


async def ask(web: Web, path: str) -> Any:
    async with web.client(None, **{"X-A": "h"}) as client:
        return await client.post(path)


async def test_no_page_writes_while_writes_are_off(tmp_path: Path) -> None:
    async with opened_web(tmp_path, plugins=[OFFER], policy__read_only=True) as web:
        plain, shown = await ask(web, "/hooks/in/in"), await ask(web, "/hooks/shown/shown")
        assert (plain.status_code, plain.headers["retry-after"]) == (503, "3600")
        said = "Nothing is changed at /hooks/{name}/in now: changes are switched off by an operator"
        assert said in plain.json()["error"]
        assert (shown.status_code, shown.headers["retry-after"]) == (503, "3600")
        assert shown.headers["content-type"] == HTML
        assert shown.text.startswith("<p>Nothing is changed at /hooks/{name}/shown now")
        assert await told_at(web) == []
        rows = [await web.audit_rows(one.headers["x-request-id"]) for one in (plain, shown)]
        async with web.client(None) as client:
            assert (await client.get("/hooks/one/look")).text == "looked"
    assert [(row["rule"], row["error_type"]) for (row,) in rows] == [
        ("read-only-gate", "unavailable")
    ] * 2


@pytest.mark.parametrize(
    ("off", "left"), [("hooks", []), ("hooks.count", ["in"]), ("hooks.list", ["in", "shown"])]
)
@pytest.mark.parametrize("live", [True, False])
async def test_a_switch_of_its_tool_or_pack_stops_a_page(
    tmp_path: Path, off: str, left: list[str], live: bool
) -> None:
    settings = {} if live else {"policy__disabled": off}
    async with opened_web(tmp_path, plugins=[OFFER], **settings) as web:
        gate = web.kit.app.gate
        if live:
            async with gate.database.transaction() as tx:
                await tx.run(lambda connection: switch(connection, off, off=True))
            await gate.switches.read()
        answers = {name: await ask(web, f"/hooks/{name}/{name}") for name in ("in", "shown")}
        assert await told_at(web) == left
    for name, answer in answers.items():
        assert answer.status_code == (200 if name in left else 503)


async def test_where_the_switches_cannot_be_read_nothing_is_written(hooked: Web) -> None:
    hooked.kit.app.gate.switches.unread = True
    async with hooked.kit.app.gate.switches._checking:  # pyright: ignore[reportPrivateUsage]
        answer = await ask(hooked, "/hooks/in/in")
    assert answer.status_code == 503
    assert "switches cannot be read" in answer.json()["error"]
    assert await told_at(hooked) == []


def test_a_page_acts_as_tools_of_its_pack() -> None:
    page = Page(path="/hooks/odd", methods=("GET",), handler=look, acts_as=("hooks.coun",))
    with pytest.raises(BadOffer, match=r"/hooks/odd acts as hooks.coun, which is no tool"):
        check_offer(replace(OFFER, pages=(page,)), [])

"""A tool of a pack whose other server fails: what its caller is told, and what is logged."""

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.gate.tools import Run, Said, a_tool, offer
from tests.identity.publisher import Answer, Publisher
from tests.outbound.patient import patient
from tests.transports.conftest import opened_web

from toolgate.gate.context import Context
from toolgate.outbound.responses import ResponseLimits

pytestmark = pytest.mark.anyio

SERVER = "A server that this tool asks"
UNUSABLE = f"{SERVER} cannot be reached, or its answer is of no use. Try again later."


def fetching(url: str, bounds: ResponseLimits) -> Run:
    """A handler that fetches an address its caller does not know."""

    async def run(ctx: Context[Any], args: Any) -> Said:
        await ctx.world.outbound.fetch(url, bounds)
        return Said()

    return run


@pytest.fixture
def published(published: Publisher) -> Iterator[Publisher]:
    over = threading.Event()

    def dripping() -> Iterator[bytes]:
        while not over.wait(0.01):
            yield b" "

    published.answers = {
        "/slow": Answer(dripping()),
        "/long": Answer(b"x" * 11),
        "/zipped": Answer(b"", 200, {"Content-Encoding": "br"}),
        "/broken": Answer({}, 500),
    }
    yield published
    over.set()


@pytest.mark.parametrize(
    ("url", "status", "kind", "told"),
    [
        ("http://127.0.0.1:1/dead", 503, "unavailable", UNUSABLE),
        ("https://hidden.invalid/", 503, "unavailable", UNUSABLE),
        ("/broken", 503, "unavailable", UNUSABLE),
        ("/zipped", 503, "unavailable", UNUSABLE),
        ("/slow", 504, "timeout", f"{SERVER} did not answer within 0.2 s. Try again later."),
        (
            "/long",
            413,
            "size_limit_exceeded",
            f"{SERVER} answered more than 10 bytes. Ask for fewer items or use a filter.",
        ),
    ],
    ids=["dead", "unknown", "broken", "zipped", "slow", "long"],
)
async def test_a_server_that_fails_is_no_defect_of_ours_and_its_address_is_not_told(
    tmp_path: Path,
    published: Publisher,
    caplog: pytest.LogCaptureFixture,
    url: str,
    status: int,
    kind: str,
    told: str,
) -> None:
    bounds = patient(seconds=0.2) if url == "/slow" else patient(most_bytes=10)
    address = published.url + url if url.startswith("/") else url
    plugins = offer(a_tool("ask", fetching(address, bounds)))
    allow = [f"127.0.0.1:{port}" for port in (1, published.port)]
    async with opened_web(tmp_path, plugins, outbound__allow=allow) as web, web.client() as client:
        answer = await client.post("/v1/tools/ask", headers={"X-Request-Id": "asked"})
        [row] = await web.audit_rows("asked")
    assert (answer.status_code, row["error_type"]) == (status, kind)
    assert answer.json()["error"]["message"] == told
    assert "127.0.0.1" not in answer.text
    logged = [one for one in caplog.records if one.name == "toolgate.gate.failures"]
    assert [one.levelno for one in logged] == [logging.WARNING]

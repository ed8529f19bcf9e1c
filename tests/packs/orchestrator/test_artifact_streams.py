"""Large artifacts go out piece by piece: they are never in memory, nor counted as such."""

import base64
import logging
import os
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.packs.orchestrator.calls import BUILD
from tests.packs.orchestrator.test_artifacts import encoded
from tests.transports.conftest import Web, opened_web

from toolgate.gate.attachments import Delivery
from toolgate.gate.calls import Call
from toolgate.ports.blobs import Blobs, Data
from toolgate.ports.documents import StoreUnavailable
from toolgate.testing.kit import ADMIN
from toolgate.transports.asgi import Message
from toolgate.transports.attachments import send_attached

pytestmark = pytest.mark.anyio

SIZES = [0, 1, 512 * 1024, 512 * 1024 + 1, 3 * 1024 * 1024 + 2]
LARGE = SIZES[-1]


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    folder = tmp_path_factory.mktemp("streams")
    # Eight of three MiB would not fit; a piece of each does.
    settings: dict[str, Any] = {"limits__unsent_attachment_bytes": 18 * 1024 * 1024}
    async with opened_web(folder, packs__enabled=["orchestrator"], **settings) as opened:
        yield opened


def blobs_of(web: Web) -> Blobs:
    return web.kit.app.worlds["orchestrator"].world.blobs


async def stored(web: Web, path: str, data: bytes) -> dict[str, str]:
    where = {"task_id": BUILD, "path": path}
    made = await web.kit.call("artifact.put", **where, content_bytes_base64=encoded(data))
    assert made.error is None, made.body
    return where


@pytest.mark.parametrize("size", SIZES, ids=str)
async def test_every_byte_comes_out_however_it_is_asked_for(web: Web, size: int) -> None:
    data = os.urandom(size)
    where = await stored(web, f"size-{size}", data)
    async with web.client() as client:
        inline = await client.post("/v1/tools/artifact.get", json=where)
        asked = {"jsonrpc": "2.0", "id": 1, "method": "artifact.get", "params": where}
        over_rpc = await client.post("/rpc", json=asked)
        accept = {"Accept": "application/octet-stream"}
        alone = await client.post("/v1/tools/artifact.get", json=where, headers=accept)
    told = inline.json()["result"]
    assert base64.b64decode(told["content_bytes_base64"], validate=True) == data
    assert over_rpc.json()["result"]["result"] == told
    assert alone.content == data
    for answer in (inline, over_rpc, alone):
        assert int(answer.headers["content-length"]) == len(answer.content)


async def test_many_at_once_take_no_room_of_each_other(web: Web) -> None:
    data = os.urandom(LARGE)
    where = await stored(web, "many", data)
    found: list[bytes] = []

    async def get() -> None:
        answer = await client.post("/v1/tools/artifact.get", json=where)
        assert answer.status_code == 200, answer.text[:200]
        found.append(base64.b64decode(answer.json()["result"]["content_bytes_base64"]))

    async with web.client() as client, anyio.create_task_group() as tasks:
        for _ in range(8):
            tasks.start_soon(get)
    assert found == [data] * 8


async def test_a_damaged_one_is_told_before_its_first_byte(web: Web) -> None:
    where = await stored(web, "damaged", os.urandom(LARGE))
    folder: Path = web.kit.app.settings.data / "blobs" / "orchestrator"
    async with web.client() as client:
        listed = await client.post(
            "/v1/tools/artifact.list", json={"task_id": BUILD, "prefix": "damaged"}
        )
        (made,) = listed.json()["result"]["items"]
        with (folder / made["storage_ref"]).open("r+b") as file:
            file.seek(LARGE - 1)
            last = file.read(1)
            file.seek(LARGE - 1)
            file.write(bytes([last[0] ^ 1]))
        answer = await client.post("/v1/tools/artifact.get", json=where)
    assert answer.status_code == 410
    assert "does not have its checksum" in answer.json()["error"]["message"]


async def test_one_that_fails_on_its_way_is_not_whole(
    web: Web, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    where = await stored(web, "cut", os.urandom(LARGE))
    blobs = blobs_of(web)
    read = type(blobs).read

    async def failing(self: Blobs, name: str) -> AsyncGenerator[Data]:
        async for piece in read(self, name):
            yield piece
            raise StoreUnavailable("The blob store cannot be used now. Try again later.")

    monkeypatch.setattr(type(blobs), "read", failing)
    asked = {"principal": ADMIN, "request_id": "test", "transport": "http"}
    outcome = await web.kit.app.gate.execute(
        Call(tool="artifact.get", arguments=where, attachments=Delivery.PIECES, **asked)
    )
    sent: list[Message] = []

    async def to(message: Message) -> None:
        sent.append(message)

    with caplog.at_level(logging.WARNING, "toolgate.transports.attachments"):
        await send_attached({"headers": []}, to, outcome)
    assert sent[-1]["more_body"], "so the server closes the connection"
    length = int(dict(sent[0]["headers"])[b"content-length"])
    assert sum(len(one["body"]) for one in sent[1:]) < length
    assert "could not be sent to its end" in caplog.text

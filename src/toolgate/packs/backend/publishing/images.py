"""Images of a post: fetched through the address guard, and made small JPEGs in a process apart."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import anyio

from toolgate.gate.errors import InvalidArguments, Problem
from toolgate.outbound.client import Outbound
from toolgate.outbound.responses import FetchFailed, ResponseLimits
from toolgate.packs.backend.publishing.image_worker import OK

WORKER = Path(__file__).with_name("image_worker.py")
MOST_IMAGES = 30
"""In the text; another one may stand above it."""
CONVERT_SECONDS = 30.0
AT_ONCE = 4
MAX_SHOWN = 120
LIMITS = ResponseLimits(
    seconds=20,
    most_bytes=20 * 1024 * 1024,
    redirects=3,
    content_types=("image/*", "*/octet-stream"),
)


@dataclass(frozen=True, slots=True)
class WantedImage:
    """An image to fetch, and the argument that names it."""

    field: str
    url: str


class FetchesImages(Protocol):
    """Where the images of posts come from."""

    async def jpegs(self, wanted: Sequence[WantedImage]) -> list[bytes]:
        """Each as a JPEG; raises `InvalidArguments` for all that cannot be used."""
        ...


@dataclass(frozen=True, slots=True)
class Images:
    """Fetches images from other servers."""

    outbound: Outbound
    limits: ResponseLimits = LIMITS
    _turn: anyio.Lock = field(default_factory=anyio.Lock)
    """One is unpacked at a time, so that the memory it takes is that of one."""

    async def jpegs(self, wanted: Sequence[WantedImage]) -> list[bytes]:
        """Each as a JPEG; raises `InvalidArguments` for all that cannot be used."""
        made: list[bytes | Problem] = [b""] * len(wanted)
        turns = anyio.Semaphore(AT_ONCE)

        async def one(number: int, image: WantedImage) -> None:
            async with turns:
                made[number] = await self._jpeg(image)

        async with anyio.create_task_group() as group:
            for number, image in enumerate(wanted):
                group.start_soon(one, number, image)
        if problems := [one for one in made if isinstance(one, Problem)]:
            raise InvalidArguments(problems)
        return [one for one in made if isinstance(one, bytes)]

    async def _jpeg(self, image: WantedImage) -> bytes | Problem:
        try:
            fetched = await self.outbound.fetch(
                image.url, self.limits, headers={"Accept": "image/*"}
            )
        except FetchFailed as failed:
            return _problem(image, f"cannot be fetched: {failed}")
        async with self._turn:
            answer = await convert(fetched.body)
        if answer.startswith(OK):
            return answer.removeprefix(OK)
        return _problem(image, f"{answer.decode('utf-8', 'replace')}.")


async def convert(data: bytes) -> bytes:
    """What the worker says about an image; it is killed where it takes too long."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-I",
        str(WORKER),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        with anyio.fail_after(CONVERT_SECONDS):
            answer, _ = await process.communicate(data)
    except TimeoutError:
        return b"takes too long to be read"
    finally:
        if process.returncode is None:
            process.kill()
            with anyio.CancelScope(shield=True):
                await process.wait()
    return answer or b"cannot be read"


def _problem(image: WantedImage, message: str) -> Problem:
    shown = image.url if len(image.url) <= MAX_SHOWN else f"{image.url[:MAX_SHOWN]}…"
    return Problem(image.field, "image", f"{image.field}: the image {shown} {message}")

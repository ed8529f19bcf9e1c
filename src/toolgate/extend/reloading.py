"""Loading a user's file again when it changes, while the gate stays open."""

import hashlib
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import anyio.to_thread

from toolgate.gate.catalogue import Catalogue, Offer
from toolgate.settings import BadSettings

logger = logging.getLogger(__name__)

SECONDS = 1.0


async def a_second() -> None:
    """Between two looks."""
    await anyio.sleep(SECONDS)


class Reloader:
    """Looks at the file now and then; a file that cannot be used changes nothing."""

    def __init__(
        self,
        file: Path,
        load: Callable[[], Offer],
        catalogue: Catalogue,
        seen: bytes,
        pause: Callable[[], Awaitable[None]] = a_second,
    ) -> None:
        self._file = file
        self._load = load
        self._catalogue = catalogue
        self._pause = pause
        self._seen = seen

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self._pause()
            try:
                await self.look()
            except Exception:
                logger.exception("%s could not be loaded again", self._file)

    async def look(self) -> bool:
        """Load the file if it has changed; whether the tools are new ones now."""
        digest = await anyio.to_thread.run_sync(digest_of, self._file)
        if digest == self._seen:
            return False
        self._seen = digest
        try:
            own = await anyio.to_thread.run_sync(self._load)
        except BadSettings as wrong:
            logger.warning("%s has changed, but the former tools stay.\n%s", self._file, wrong)
            return False
        await self._catalogue.renew(own)
        logger.warning("%s was loaded again: %d tools.", self._file, len(own.tools))
        for name in self._catalogue.replaced:
            logger.warning("%s replaces the built-in tool of its name.", name)
        return True


def digest_of(file: Path) -> bytes:
    """What tells one content of the file from another; nothing where there is no file."""
    try:
        return hashlib.sha256(file.read_bytes()).digest()
    except OSError:
        return b""

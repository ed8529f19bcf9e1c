"""Loading a user's files again when one changes, while the gate stays open."""

import hashlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from toolgate.gate.catalogue import Catalogue
from toolgate.gate.offer import AnyOffer
from toolgate.setting_types import BadSettings

logger = logging.getLogger(__name__)

SECONDS = 1.0


async def wait_a_second() -> None:
    """Between two looks."""
    await anyio.sleep(SECONDS)


class Reloader:
    """Looks at the files now and then; one that cannot be used changes nothing."""

    def __init__(
        self,
        files: Sequence[Path],
        load: Callable[[], AnyOffer],
        catalogue: Catalogue,
        digest: bytes,
        pause: Callable[[], Awaitable[None]] = wait_a_second,
    ) -> None:
        self._files = files
        self._names = ", ".join(map(str, files))
        self._load = load
        self._catalogue = catalogue
        self._pause = pause
        self._digest = digest

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            await self._pause()
            try:
                await self.reload_if_changed()
            except Exception:
                logger.exception("%s could not be loaded again", self._names)

    async def reload_if_changed(self) -> bool:
        """Load the files if one has changed; whether the tools are new ones now."""
        digest = await anyio.to_thread.run_sync(digest_of, self._files)
        if digest == self._digest:
            return False
        self._digest = digest
        try:
            own = await anyio.to_thread.run_sync(self._load)
        except BadSettings as problem:
            logger.warning("%s has changed, but the former tools stay.\n%s", self._names, problem)
            return False
        await self._catalogue.renew(own)
        logger.warning("%s was loaded again: %d tools.", self._names, len(own.tools))
        for name in self._catalogue.replaced:
            logger.warning("%s replaces the built-in tool of its name.", name)
        return True


def digest_of(files: Sequence[Path]) -> bytes:
    """What tells one content of the files from another; a missing file has one of its own."""
    return b"".join(map(_digest, files))


def _digest(file: Path) -> bytes:
    try:
        return hashlib.sha256(file.read_bytes()).digest()
    except OSError:
        return bytes(hashlib.sha256().digest_size)

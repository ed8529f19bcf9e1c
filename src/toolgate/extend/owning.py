"""A user's own tools and what they need while the gate is open."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from toolgate.extend.loading import check_settings, load
from toolgate.extend.outbound import Outbound
from toolgate.extend.reloading import Reloader, a_second, digest_of
from toolgate.gate.catalogue import Catalogue, Offer
from toolgate.sections import Extend


class Own:
    """The tools of one file, and their way out. Raises `BadSettings` for a file with problems."""

    def __init__(self, file: Path, settings: Extend, most_bytes: int) -> None:
        check_settings(settings)
        self.file = file
        self._settings = settings
        self._outbound = Outbound(seconds=settings.seconds, most_bytes=most_bytes)
        # Taken before the file is read, so that no change in between is missed.
        self._seen = digest_of(file)
        self.offer = self._load()

    def reloader(
        self, catalogue: Catalogue, pause: Callable[[], Awaitable[None]] = a_second
    ) -> Reloader:
        """Keeps the catalogue at what the file says."""
        return Reloader(self.file, self._load, catalogue, self._seen, pause)

    async def close(self) -> None:
        """Give connections back."""
        await self._outbound.close()

    def _load(self) -> Offer:
        return load(self.file, self._settings, self._outbound)

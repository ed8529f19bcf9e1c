"""A user's own tools, as long as the gate is open."""

from collections.abc import Awaitable, Callable

from toolgate.extend.loader import check_settings, load
from toolgate.extend.reloader import Reloader, a_second, digest_of
from toolgate.gate.catalogue import Catalogue
from toolgate.gate.offer import AnyOffer
from toolgate.sections import ExtendSettings


class Own:
    """The tools of the files in `extend.tools`.

    Raises `BadSettings` for a file with problems.
    """

    def __init__(self, settings: ExtendSettings, most_bytes: int) -> None:
        check_settings(settings)
        self._settings = settings
        self._most_bytes = most_bytes
        # Taken before the files are read, so that no change in between is missed.
        self._seen = digest_of(settings.tools)
        self.offer = self._load()

    def reloader(
        self, catalogue: Catalogue, pause: Callable[[], Awaitable[None]] = a_second
    ) -> Reloader:
        """Keeps the catalogue at what the files say."""
        return Reloader(self._settings.tools, self._load, catalogue, self._seen, pause)

    def _load(self) -> AnyOffer:
        return load(self._settings.tools, self._settings, self._most_bytes)

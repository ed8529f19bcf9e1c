"""A user's own tools, as long as the gate is open."""

from collections.abc import Awaitable, Callable

from toolgate.extend.offer import check_settings, offer_of
from toolgate.extend.reloader import Reloader, digest_of, wait_a_second
from toolgate.gate.catalogue import Catalogue
from toolgate.gate.offer import AnyOffer
from toolgate.sections import ExtendSettings, LimitSettings


class OwnTools:
    """The tools of the files in `extend.tools`.

    Raises `BadSettings` for a file with problems.
    """

    def __init__(self, settings: ExtendSettings, limits: LimitSettings) -> None:
        check_settings(settings)
        self._settings = settings
        self._limits = limits
        # Taken before the files are read, so that no change in between is missed.
        self._digest = digest_of(settings.tools)
        self.offer = self._read()

    def reloader(
        self, catalogue: Catalogue, pause: Callable[[], Awaitable[None]] = wait_a_second
    ) -> Reloader:
        """Keeps the catalogue at what the files say."""
        return Reloader(self._settings.tools, self._read, catalogue, self._digest, pause)

    def _read(self) -> AnyOffer:
        return offer_of(self._settings.tools, self._settings, self._limits)

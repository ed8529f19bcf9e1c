"""Where blobs are: each pack's in a folder, or under a prefix, of its own."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from toolgate.ports.blobs import Blobs
from toolgate.sections import Settings
from toolgate.setting_types import BadSettings
from toolgate.storage_sections import BlobSettings

FOLDER = "blobs"


def blob_folder(settings: Settings) -> Path | None:
    """The folder with the blobs of every pack; None if they are in S3."""
    place = urlsplit(settings.blobs.url)
    if place.scheme != "file":
        return None
    return (Path(unquote(place.path)) if place.path else settings.data / FOLDER).absolute()


class BlobStores:
    """The blobs of every pack that keeps some."""

    def __init__(self, settings: Settings, *, existing: bool = False) -> None:
        self._settings = settings
        self._existing = existing
        """Whether no folder is made before there is something to store in it."""
        self._of: dict[str, Blobs] = {}

    def of(self, pack: str) -> Blobs:
        """The blobs of a pack."""
        if pack not in self._of:
            self._of[pack] = self._opened(pack)
        return self._of[pack]

    async def check(self) -> None:
        """Raise `StoreUnavailable` unless every place that is in use answers."""
        for blobs in self._of.values():
            await blobs.check()

    def _opened(self, pack: str) -> Blobs:
        # Only who keeps blobs pays for the library.
        from toolgate.adapters.obstore import file_blobs, s3_blobs  # noqa: PLC0415

        if folder := blob_folder(self._settings):
            try:
                return file_blobs(folder / pack, existing=self._existing)
            except OSError as problem:
                why = problem.strerror or str(problem)
                raise BadSettings(
                    f"Setting blobs.url: the folder {folder} cannot be made ({why}). Make it, or "
                    "name another."
                ) from None
        settings = self._settings.blobs
        place = urlsplit(settings.url)
        _check_credentials(settings)
        return s3_blobs(
            place.netloc,
            f"{place.path.strip('/')}/{pack}".lstrip("/"),
            endpoint=settings.endpoint,
            region=settings.region,
            access_key_id=settings.access_key_id,
            secret_access_key=settings.secret_access_key,
            session_token=settings.session_token,
        )


def _check_credentials(settings: BlobSettings) -> None:
    """Raise where one half of the credentials is missing."""
    halves = {
        "AWS_ACCESS_KEY_ID": settings.access_key_id,
        "AWS_SECRET_ACCESS_KEY": settings.secret_access_key,
    }
    missing = [name for name, value in halves.items() if not value]
    if len(missing) == 1:
        key = BlobSettings.borrowed[missing[0]]
        (there,) = halves.keys() - missing
        raise BadSettings(
            f"{missing[0]} (setting blobs.{key}) is not set, and {there} is. Set both or none."
        )

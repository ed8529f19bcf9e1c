"""Where documents are: each pack's in a namespace of its own, each place opened once."""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

from toolgate.adapters.sql.documents import IndexBuild, Progress, SqlDocuments
from toolgate.adapters.sql.documents.index import unindexed_paths
from toolgate.adapters.user_documents import UserDocuments
from toolgate.db.engine import Database
from toolgate.db.upgrades import OtherSchema
from toolgate.ports import users
from toolgate.ports.documents import DocumentStore
from toolgate.sections import Settings
from toolgate.setting_types import BadSettings

SCHEME = "firestore://"
DEFAULT_DATABASE = "(default)"
FEW = 1000
"""Documents that are indexed in the time of a start."""
PROGRESS_SECONDS = 2.0

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Firestore:
    """A Firestore database."""

    project: str | None
    """None for the service account's own."""
    database: str

    def __str__(self) -> str:
        database = "" if self.database == DEFAULT_DATABASE else f"/{self.database}"
        return f"{SCHEME}{self.project or ''}{database}"

    def may_be(self, other: "Firestore | None") -> bool:
        """Whether both are, or could be, the same one."""
        if other is None or self.database != other.database:
            return False
        return self.project == other.project or None in (self.project, other.project)


def firestore_of(settings: Settings, namespace: str) -> Firestore | None:
    """The Firestore database with the documents of a pack; None if they are in the database.

    It is chosen by its address or, where no place is set at all, by the presence of credentials.
    """
    places = settings.documents.__dict__
    url: str | None = places.get(namespace) or settings.documents.url
    if url is None and not any(places.values()) and has_credentials(settings):
        url = SCHEME
    if url is None or not url.startswith(SCHEME):
        return None
    project, _, database = url.removeprefix(SCHEME).partition("/")
    return Firestore(project or None, database or DEFAULT_DATABASE)


def has_credentials(settings: Settings) -> bool:
    """Whether there are credentials for Google Cloud."""
    return bool(settings.google.credentials_file or settings.google.service_account)


def packs_with_documents(settings: Settings) -> list[str]:
    """The packs whose documents can have a place of their own."""
    return [name for name in type(settings.documents).model_fields if name != "url"]


def uses_firestore(settings: Settings) -> bool:
    """Whether any documents are in Firestore."""
    return any(firestore_of(settings, name) for name in packs_with_documents(settings))


class LoggedProgress:
    """How far the index has been built, in the log, where that takes more than a moment."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._said = clock()

    async def note(self, done: int, total: int) -> None:
        """So many documents of so many have their entries."""
        if self._clock() - self._said >= PROGRESS_SECONDS or (done == total and total > FEW):
            self._said = self._clock()
            logger.info("Indexing documents: %s of %s.", f"{done:,}", f"{total:,}")


class DocumentStores:
    """The documents of every pack, apart from those of the others.

    Two packs with the same Firestore database have the same documents.
    """

    def __init__(self, settings: Settings, database: Database) -> None:
        self._settings = settings
        _check_index(settings)
        self.database = database
        self._of: dict[str, DocumentStore] = {}
        self._in: dict[Firestore | None, DocumentStore] = {}

    def of(self, namespace: str) -> DocumentStore:
        """The documents of a pack."""
        if namespace not in self._of:
            self._of[namespace] = self._opened(namespace)
        return self._of[namespace]

    async def complete_index(self, progress: Progress) -> int:
        """Make the index of documents that have none; how many there were."""
        return await self._build().complete(progress)

    async def complete_index_at_start(self) -> None:
        """The same, but for a server with many documents: others may be using it."""
        build = self._build()
        if await build.is_complete():
            return
        documents = await build.documents()
        if documents > FEW and self.database.dialect != "sqlite":
            raise OtherSchema(
                f"{documents:,} documents are not indexed by the fields that the settings name. "
                "Run `toolgate db upgrade`."
            )
        await build.complete(LoggedProgress().note)

    def _build(self) -> IndexBuild:
        return IndexBuild(self.database, self._settings.database.unindexed)

    async def check(self) -> None:
        """Raise `StoreUnavailable` unless every place answers."""
        for store in self._in.values():
            await store.check()

    async def close(self) -> None:
        """Give connections back."""
        for store in self._in.values():
            await store.close()

    def of_users(self) -> DocumentStore:
        """The records of users with their private keys, for who checks credentials alone."""
        return self._place_of(users.NAMESPACE)

    def _opened(self, namespace: str) -> DocumentStore:
        store = self._place_of(namespace)
        if namespace == users.NAMESPACE:
            return UserDocuments(store)
        place, of_users = (
            firestore_of(self._settings, one) for one in (namespace, users.NAMESPACE)
        )
        if place is None or not place.may_be(of_users):
            return store
        from toolgate.adapters.shared_documents import SharedDocuments  # noqa: PLC0415

        return SharedDocuments(UserDocuments(store))

    def _place_of(self, namespace: str) -> DocumentStore:
        place = firestore_of(self._settings, namespace)
        if place is None:
            unindexed = self._settings.database.unindexed
            store = SqlDocuments(self.database, namespace, unindexed)
            self._in.setdefault(None, store)
            return store
        if place not in self._in:
            self._in[place] = _firestore(place, self._settings)
        return self._in[place]


def _check_index(settings: Settings) -> None:
    """Raise `BadSettings` where users could not be found by their private keys."""
    exempt = unindexed_paths(settings.database.unindexed, users.USERS)
    if exempt & {("api",), ("api", "privateKey")}:
        raise BadSettings(
            "Setting database.unindexed exempts api of users, by which private keys are looked up. "
            "Name other fields."
        )


def _firestore(place: Firestore, settings: Settings) -> DocumentStore:
    # Heavy, so imported only when it is configured.
    from toolgate.adapters.firestore import FirestoreDocuments  # noqa: PLC0415

    return FirestoreDocuments(
        project=place.project,
        database=place.database,
        credentials_file=settings.google.credentials_file,
        service_account_json=settings.google.service_account,
        emulator_host=settings.google.emulator_host,
    )

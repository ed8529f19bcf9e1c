"""Where trees are: each pack's in a namespace of its own, or all in one Realtime Database."""

from urllib.parse import parse_qs, urlsplit

from toolgate.adapters.sql.tree import SqlTree
from toolgate.db.engine import Database
from toolgate.outbound.client import Outbound
from toolgate.outbound.service_accounts import BadServiceAccount, account_info
from toolgate.ports.documents import StoreUnavailable
from toolgate.ports.tree import TreeStore
from toolgate.sections import Settings
from toolgate.setting_types import BadSettings
from toolgate.storage_sections import GoogleSettings

EMBEDDED = "database:"
PROJECT = "rtdb://"
NO_ACCOUNT = (
    "tree.url names a Realtime Database, which needs a service account. "
    "Set GOOGLE_APPLICATION_CREDENTIALS or FIREBASE_SERVICE_ACCOUNT_KEY."
)


def realtime_database_of(settings: Settings) -> tuple[str, str | None] | None:
    """The URL of the Realtime Database, and its name on an emulator; None for the embedded tree."""
    url = settings.tree.url
    if url is None or url == EMBEDDED:
        return None
    if url.startswith(PROJECT):
        return f"https://{url.removeprefix(PROJECT)}-default-rtdb.firebaseio.com", None
    parts = urlsplit(url)
    names = parse_qs(parts.query).get("ns", [None])
    return f"{parts.scheme}://{parts.netloc}", names[0]


class TreeStores:
    """The trees of the packs that keep one."""

    def __init__(self, settings: Settings, database: Database, outbound: Outbound) -> None:
        self._settings = settings
        self._database = database
        self._outbound = outbound
        self._place = realtime_database_of(settings)
        self._of: dict[str, TreeStore] = {}

    @property
    def join_transactions(self) -> bool:
        """Whether a write becomes visible only when the gate's transaction commits."""
        return self._place is None

    def of(self, pack: str) -> TreeStore:
        """The tree of a pack."""
        if pack not in self._of:
            self._of[pack] = self._opened(pack)
        return self._of[pack]

    async def check(self) -> None:
        """Raise `StoreUnavailable` unless every tree that is in use answers."""
        for store in self._of.values():
            await store.check()

    async def close(self) -> None:
        """Give connections back."""
        for store in self._of.values():
            await store.close()

    def _opened(self, pack: str) -> TreeStore:
        if self._place is None:
            return SqlTree(self._database, pack)
        # Only who has one pays for it.
        from toolgate.adapters.rtdb import RealtimeDatabase  # noqa: PLC0415
        from toolgate.adapters.rtdb.accounts import ServiceAccount  # noqa: PLC0415

        url, name = self._place
        if url.startswith("http:"):  # an emulator: no credential goes over a plain line
            return RealtimeDatabase(self._outbound, url, namespace=name)
        try:
            info = account_info(_account(self._settings.google))
            account = ServiceAccount(self._outbound, info)
        except (BadServiceAccount, StoreUnavailable) as problem:
            raise BadSettings(f"{NO_ACCOUNT} {problem}") from None
        return RealtimeDatabase(self._outbound, url, namespace=name, token=account.token)


def _account(google: GoogleSettings) -> str:
    if google.service_account is not None:
        return google.service_account
    if google.credentials_file is None:
        raise BadSettings(NO_ACCOUNT)
    try:
        return google.credentials_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadSettings(f"{google.credentials_file} cannot be read. {NO_ACCOUNT}") from None

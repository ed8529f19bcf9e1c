"""The connection to one Firestore database: opened at the first use, each request in time."""

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypedDict, TypeVar, Unpack, cast

from toolgate.adapters.firestore.messages import Message
from toolgate.ports.documents import StoreUnavailable

try:
    from google.api_core import exceptions as refusals
    from google.api_core.retry import if_exception_type
    from google.api_core.retry_async import AsyncRetry
    from google.auth.credentials import AnonymousCredentials
    from google.auth.exceptions import GoogleAuthError
    from google.cloud.firestore import AsyncClient
    from google.oauth2.service_account import Credentials
except ImportError as missing:
    raise ImportError(
        "Firestore needs packages that are not installed. Install toolgate[firestore]."
    ) from missing

T = TypeVar("T")

NO_CREDENTIALS = (
    "Failed to initialize Firestore. "
    "Set GOOGLE_APPLICATION_CREDENTIALS or FIREBASE_SERVICE_ACCOUNT_KEY."
)
EMULATOR_PROJECT = "demo-toolgate"
DEFAULT_DATABASE = "(default)"
SCOPES = AsyncClient.SCOPE


class Place(TypedDict, total=False):
    """Where a database is, and how to get in."""

    project: str | None
    """None for the service account's own."""
    database: str | None
    credentials_file: Path | None
    service_account_json: str | None
    emulator_host: str | None
    timeout_seconds: float


class Connection:
    """A Firestore database, and how long to wait for it."""

    def __init__(self, **place: Unpack[Place]) -> None:
        self._place = place
        self._database = place.get("database") or DEFAULT_DATABASE
        self._emulator_host = place.get("emulator_host")
        self.timeout = place.get("timeout_seconds", 10.0)
        self._retry = AsyncRetry(
            predicate=if_exception_type(refusals.ServiceUnavailable, refusals.ResourceExhausted),
            initial=0.1,
            maximum=1.0,
            timeout=self.timeout,
        )
        self._open_client: Any = None

    @property
    def client(self) -> Any:
        """Google's client, made at the first use."""
        if self._open_client is None:
            self._open_client = self._new_client()
        return self._open_client

    @property
    def database(self) -> str:
        """The database's name in the protocol."""
        return f"projects/{self.client.project}/databases/{self._database}"

    @property
    def root(self) -> str:
        """The name below which all documents lie."""
        return f"{self.database}/documents"

    async def call(self, method: str, request: Any) -> Any:
        """Send a request once."""
        ask = getattr(self.client._firestore_api, method)
        prefix = [("google-cloud-resource-prefix", self.database)]
        return await ask(request=request, retry=None, timeout=self.timeout, metadata=prefix)

    async def stream(self, method: str, request: Any) -> list[Message]:
        """All responses to a request that changes nothing."""

        async def read() -> list[Message]:
            return [_plain(one) async for one in await self.call(method, request)]

        return await self.repeat(read)

    async def repeat(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask what changes nothing, and again where the server is busy, until the time is over."""
        asked: Any = self._retry(ask)
        return await asked()

    async def close(self) -> None:
        """Close the channel, if one was opened."""
        if self._open_client is not None:
            client, self._open_client = self._open_client, None
            await client._firestore_api.transport.close()

    def _new_client(self) -> Any:
        project = self._place.get("project")
        if self._emulator_host is not None:
            project, credentials = project or EMULATOR_PROJECT, AnonymousCredentials()
        else:
            credentials = self._service_account()
            project = project or credentials.project_id
        client: Any = AsyncClient(project=project, credentials=credentials, database=self._database)
        # The client takes the emulator from the environment alone, and only here can it be told
        # otherwise: what was configured counts, in both directions.
        client._emulator_host = self._emulator_host
        return client

    def _service_account(self) -> Any:
        account: Any = Credentials
        try:
            return account.from_service_account_info(self._account_info(), scopes=SCOPES)
        except (OSError, ValueError, GoogleAuthError) as exc:
            raise StoreUnavailable(NO_CREDENTIALS) from exc

    def _account_info(self) -> dict[str, Any]:
        if (text := self._place.get("service_account_json")) is not None:
            return _json_object(text)
        if (file := self._place.get("credentials_file")) is not None:
            return _json_object(file.read_text(encoding="utf-8"))
        raise ValueError("no credentials are configured")


def _plain(response: Any) -> Message:
    """A response without what makes it comfortable and slow."""
    kind = cast(Any, type(response))
    return kind.pb(response)


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        # Not chained: a JSON error carries the whole text, and with it the private key.
        raise ValueError("the service account is not JSON") from None
    if not isinstance(value, dict):
        raise ValueError("the service account is not a JSON object")  # noqa: TRY004
    return cast("dict[str, Any]", value)

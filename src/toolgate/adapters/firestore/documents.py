"""Documents in Google Cloud Firestore, or in its emulator.

Importing this module imports the Google libraries; do so only when a setting asks for them.
"""

import base64
import json
import math
import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from toolgate.db.transactions import Transaction
from toolgate.ports.documents import (
    DocumentExists,
    Fields,
    Filter,
    Json,
    Operator,
    StoredDocument,
    StoreUnavailable,
)

try:
    from google.api_core import exceptions as refusals
    from google.api_core.retry import if_exception_type
    from google.api_core.retry_async import AsyncRetry
    from google.auth.credentials import AnonymousCredentials
    from google.auth.exceptions import GoogleAuthError
    from google.cloud.firestore import AsyncClient, GeoPoint
    from google.cloud.firestore_v1.base_document import BaseDocumentReference
    from google.cloud.firestore_v1.base_query import FieldFilter
    from google.cloud.firestore_v1.field_path import FieldPath
    from google.cloud.firestore_v1.vector import Vector
    from google.oauth2.service_account import Credentials
except ImportError as missing:
    raise ImportError(
        "Firestore needs packages that are not installed. Install toolgate[firestore]."
    ) from missing

NO_CREDENTIALS = (
    "Failed to initialize Firestore. "
    "Set GOOGLE_APPLICATION_CREDENTIALS or FIREBASE_SERVICE_ACCOUNT_KEY."
)
NO_ANSWER = "Firestore does not answer. Try again later."
NO_PERMISSION = (
    "Firestore denies permission to the service account. "
    "Give it the role Cloud Datastore User (roles/datastore.user)."
)
NO_INDEX = "Firestore needs an index for this query"

EMULATOR_PROJECT = "demo-toolgate"
# As protocol buffers, and with them Firestore's REST interface, spell them in JSON.
NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
LINK = re.compile(r"https://\S+")
SCOPES = AsyncClient.SCOPE


class FirestoreDocuments:
    """A document store in one Firestore database.

    A write is on its way at once: it cannot wait for the gate's transaction, nor be rolled
    back with it. The client is made at the first use.
    """

    joins_transaction: bool = False

    def __init__(
        self,
        *,
        project: str | None = None,
        database: str | None = None,
        credentials_file: Path | None = None,
        service_account_json: str | None = None,
        emulator_host: str | None = None,
        timeout_seconds: float = 10.0,
    ) -> None:
        self._project = project
        self._database = database
        self._credentials_file = credentials_file
        self._service_account_json = service_account_json
        self._emulator_host = emulator_host
        self._timeout = timeout_seconds
        self._retry = AsyncRetry(
            predicate=if_exception_type(refusals.ServiceUnavailable, refusals.ResourceExhausted),
            initial=0.1,
            maximum=1.0,
            timeout=timeout_seconds,
        )
        self._open_client: Any = None

    async def get(self, collection: str, document_id: str) -> Fields | None:
        """Return the fields of one document, or None."""
        with _as_store_errors():
            snapshot = await self._document(collection, document_id).get(
                retry=self._retry, timeout=self._timeout
            )
            return _fields(snapshot) if snapshot.exists else None

    async def query(
        self, collection: str, filters: Sequence[Filter], limit: int
    ) -> Sequence[StoredDocument]:
        """Return at most `limit` documents that pass every filter, in Firestore's order."""
        if any(_passes_nothing(one) for one in filters):
            return []
        with _as_store_errors():
            query = self._client().collection(collection)
            for one in filters:
                query = query.where(filter=field_filter(one))
            snapshots = await query.limit(limit).get(retry=self._retry, timeout=self._timeout)
            return [StoredDocument(one.id, _fields(one)) for one in snapshots]

    async def collections(self) -> Sequence[str]:
        """Return the names of the collections that are not nested."""
        with _as_store_errors():
            every = self._client().collections(retry=self._retry, timeout=self._timeout)
            return sorted([one.id async for one in every])

    async def create(
        self,
        tx: Transaction,
        collection: str,
        fields: Fields,
        document_id: str | None,
    ) -> str:
        """Store a new document at once, whatever becomes of the transaction."""
        with _as_store_errors():
            document = self._document(collection, document_id)
            try:
                # Never retried: when only the answer was lost, a second attempt would find the
                # document of the first and report it as somebody else's.
                await document.create(fields, retry=None, timeout=self._timeout)
            except refusals.AlreadyExists as exc:
                raise DocumentExists(f"Document {document.id} exists in {collection}") from exc
            return str(document.id)

    async def check(self) -> None:
        """Raise `StoreUnavailable` unless Firestore answers a read."""
        await self.get("toolgate", "check")

    async def close(self) -> None:
        """Close the channel, if one was opened."""
        if self._open_client is not None:
            client, self._open_client = self._open_client, None
            await client._firestore_api.transport.close()

    def _document(self, collection: str, document_id: str | None) -> Any:
        if document_id is not None and (not document_id or "/" in document_id):
            raise ValueError("a document id is not empty and has no slash")
        return self._client().collection(collection).document(document_id)

    def _client(self) -> Any:
        if self._open_client is None:
            self._open_client = self._new_client()
        return self._open_client

    def _new_client(self) -> Any:
        if self._emulator_host is not None:
            project, credentials = self._project or EMULATOR_PROJECT, AnonymousCredentials()
        else:
            credentials = self._service_account()
            project = self._project or credentials.project_id
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
        if self._service_account_json is not None:
            return _json_object(self._service_account_json)
        if self._credentials_file is not None:
            return _json_object(self._credentials_file.read_text(encoding="utf-8"))
        raise ValueError("no credentials are configured")


def _json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        # Not chained: a JSON error carries the whole text, and with it the private key.
        raise ValueError("the service account is not JSON") from None
    if not isinstance(value, dict):
        raise ValueError("the service account is not a JSON object")  # noqa: TRY004
    return cast("dict[str, Any]", value)


@contextmanager
def _as_store_errors() -> Generator[None]:
    """Turn what the Google libraries raise into `StoreUnavailable`."""
    try:
        yield
    except (refusals.Forbidden, refusals.Unauthorized) as exc:
        raise StoreUnavailable(NO_PERMISSION) from exc
    except refusals.FailedPrecondition as exc:
        raise StoreUnavailable(_missing_index_message(f"{exc.message}")) from exc
    except (refusals.BadRequest, refusals.NotFound) as exc:
        raise StoreUnavailable(f"Firestore refused the request: {exc.message}") from exc
    except (refusals.GoogleAPIError, GoogleAuthError) as exc:
        raise StoreUnavailable(NO_ANSWER) from exc
    except ValueError as exc:
        raise StoreUnavailable(f"Firestore cannot take this request: {exc}") from exc


def _missing_index_message(message: str) -> str:
    if link := LINK.search(message):
        return f"{NO_INDEX}: {link.group()}"
    if "index" in message:
        return f"{NO_INDEX}."
    return f"Firestore refused the request: {message}"


def _passes_nothing(one: Filter) -> bool:
    """Whether no document can pass: only `==` and `!=` know null, an empty list holds nothing."""
    if one.operator is Operator.IN:
        return all(value is None for value in one.value)
    return one.value is None and one.operator not in (Operator.EQUAL, Operator.NOT_EQUAL)


def field_filter(one: Filter) -> FieldFilter:
    """A filter as Firestore takes it, every segment of its path quoted where need be."""
    path = FieldPath(*one.path).to_api_repr()
    match one.operator:
        case Operator.IN:
            return FieldFilter(path, "in", [value for value in one.value if value is not None])
        case Operator.ARRAY_CONTAINS:
            return FieldFilter(path, "array_contains", one.value)
        case _:
            return FieldFilter(path, one.operator.value, one.value)


def _fields(snapshot: Any) -> Fields:
    return {name: to_json(value) for name, value in snapshot.to_dict().items()}


def to_json(value: object) -> Json:
    """A Firestore value as JSON: what JSON lacks becomes text in its usual spelling."""
    match value:
        case None | bool() | int() | str():
            return value
        case Mapping():
            fields = cast("Mapping[str, object]", value)
            return {name: to_json(one) for name, one in fields.items()}
        case list() | tuple() | Vector():
            return [to_json(one) for one in cast("Sequence[object]", value)]
        case _:
            return _as_json(value)


def _as_json(value: object) -> Json:
    match value:
        case float():
            return value if math.isfinite(value) else NOT_FINITE[str(value)]
        case datetime():
            return _timestamp(value)
        case bytes():
            return base64.b64encode(value).decode("ascii")
        case GeoPoint():
            point = cast(Any, value)
            return {"latitude": point.latitude, "longitude": point.longitude}
        case BaseDocumentReference():
            return cast(Any, value).path
        case _:
            return str(value)


def _timestamp(value: datetime) -> str:
    """RFC 3339 in UTC (as Firestore gives it), with no more digits than needed."""
    nanoseconds = getattr(value, "nanosecond", 0) or value.microsecond * 1000
    fraction = f".{nanoseconds:09d}".rstrip("0") if nanoseconds else ""
    return f"{value.isoformat(timespec='seconds')[:19]}{fraction}Z"

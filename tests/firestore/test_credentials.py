"""Credentials of Firestore: where they come from, and what is told when they are wrong."""

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.firestore.wire_server import WireServer
from tests.private_keys import new_rsa_key

from toolgate.adapters.firestore import FirestoreDocuments
from toolgate.db.transactions import Transaction
from toolgate.ports.documents import (
    Create,
    DocumentStore,
    DocumentTransaction,
    Query,
    StoreUnavailable,
)

NO_CREDENTIALS = (
    "Failed to initialize Firestore. "
    "Set GOOGLE_APPLICATION_CREDENTIALS or FIREBASE_SERVICE_ACCOUNT_KEY."
)


@pytest.fixture(scope="module")
def service_account() -> dict[str, str]:
    return {
        "type": "service_account",
        "project_id": "from-the-account",
        "private_key_id": "1",
        "private_key": new_rsa_key(),
        "client_email": "gate@from-the-account.example",
        "token_uri": "https://127.0.0.1:1/token",
    }


def client_of(store: Any) -> Any:
    """The Google client inside, to see what it was made of."""
    return store._connection.client


async def untouched(_: DocumentTransaction) -> None:
    """Work that does nothing."""


def test_firestore_is_a_document_store() -> None:
    store: DocumentStore = FirestoreDocuments(emulator_host="127.0.0.1:1")
    assert store.joins_transaction is False


def test_a_missing_package_is_named_by_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.cloud.firestore", None)
    for name in [name for name in sys.modules if name.startswith("toolgate.adapters.firestore.")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ImportError, match=r"Install toolgate\[firestore\]"):
        importlib.import_module("toolgate.adapters.firestore.documents")


def nothing(_: Path) -> dict[str, Any]:
    return {}


def a_project(_: Path) -> dict[str, Any]:
    return {"project": "p"}


def no_file(folder: Path) -> dict[str, Any]:
    return {"credentials_file": folder / "absent.json"}


def a_folder(folder: Path) -> dict[str, Any]:
    return {"credentials_file": folder}


def a_file(text: str) -> Callable[[Path], dict[str, Any]]:
    def written(folder: Path) -> dict[str, Any]:
        file = folder / "account.json"
        file.write_text(text, encoding="utf-8")
        return {"credentials_file": file}

    return written


def inline(text: str) -> Callable[[Path], dict[str, Any]]:
    return lambda _: {"service_account_json": text}


WITHOUT_KEY = json.dumps(
    {"type": "service_account", "project_id": "p", "client_email": "a@b", "token_uri": "https://x"}
)
BAD_KEY = json.dumps(json.loads(WITHOUT_KEY) | {"private_key": "secret-that-is-no-key"})


@pytest.mark.anyio
@pytest.mark.parametrize(
    "given_by",
    [
        pytest.param(nothing, id="nothing"),
        pytest.param(a_project, id="project only"),
        pytest.param(no_file, id="file that is absent"),
        pytest.param(a_folder, id="folder"),
        pytest.param(a_file("{"), id="file that is not JSON"),
        pytest.param(a_file("[]"), id="file that is no object"),
        pytest.param(a_file(WITHOUT_KEY), id="file without key"),
        pytest.param(inline(""), id="empty text"),
        pytest.param(inline("secret-that-is-no-json"), id="text that is not JSON"),
        pytest.param(inline("{}"), id="empty object"),
        pytest.param(inline(WITHOUT_KEY), id="object without key"),
        pytest.param(inline(BAD_KEY), id="object with a bad key"),
    ],
)
async def test_bad_credentials_are_told_apart_from_nothing_but_their_names(
    given_by: Callable[[Path], dict[str, Any]], tmp_path: Path, tx: Transaction
) -> None:
    store = FirestoreDocuments(**given_by(tmp_path))
    calls = [
        store.check,
        lambda: store.get("c", "one"),
        lambda: store.query(Query("c")),
        lambda: store.write(tx, Create("c", "one", {})),
        lambda: store.transact(tx, untouched),
    ]
    for call in calls:
        with pytest.raises(StoreUnavailable) as refused:
            await call()
        assert str(refused.value) == NO_CREDENTIALS
        assert refused.value.__cause__ is not None
        assert "secret" not in str(refused.value.__cause__)


@pytest.mark.anyio
@pytest.mark.parametrize("by_file", [True, False], ids=["file", "text"])
@pytest.mark.parametrize("project", [None, "given"])
async def test_the_project_comes_from_the_account_unless_given(
    service_account: dict[str, str], tmp_path: Path, project: str | None, by_file: bool
) -> None:
    text = json.dumps(service_account)
    how = a_file(text) if by_file else inline(text)
    store = FirestoreDocuments(project=project, **how(tmp_path))
    client = client_of(store)
    assert client.project == (project or "from-the-account")
    assert client._credentials.service_account_email == service_account["client_email"]
    await store.close()


@pytest.mark.anyio
async def test_what_is_configured_counts_and_not_the_environment(
    service_account: dict[str, str], server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", "127.0.0.1:1")
    emulated = FirestoreDocuments(emulator_host=server.host, timeout_seconds=2)
    assert await emulated.get("c", "absent") is None
    await emulated.close()
    real = FirestoreDocuments(service_account_json=json.dumps(service_account))
    assert client_of(real)._target == "firestore.googleapis.com"
    await real.close()


@pytest.mark.anyio
async def test_nothing_is_opened_before_the_first_use(server: WireServer) -> None:
    store = FirestoreDocuments(emulator_host=server.host)
    await store.close()
    assert server.calls == []
    assert await store.get("c", "absent") is None
    await store.close()
    assert server.calls == ["BatchGetDocumentsRequest"]

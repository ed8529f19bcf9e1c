"""Access tokens of a service account."""

import base64
import json
from typing import Any

import anyio
import pytest
from tests.identity.publisher import Answer, publishing
from tests.private_keys import new_rsa_key

from toolgate.adapters.rtdb.accounts import SCOPES, ServiceAccount
from toolgate.outbound.client import Outbound
from toolgate.ports.documents import StoreUnavailable

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def info() -> dict[str, Any]:
    return {
        "type": "service_account",
        "client_email": "toolgate@example.iam.gserviceaccount.com",
        "private_key": new_rsa_key(),
    }


async def test_a_token_is_fetched_once_for_all_who_wait_and_kept(
    info: dict[str, Any], outbound: Outbound
) -> None:
    with publishing() as published:
        token = {"access_token": "secret", "expires_in": 3600, "token_type": "Bearer"}
        published.answers["/token"] = Answer(token)
        account = ServiceAccount(outbound, {**info, "token_uri": f"{published.url}/token"})
        told: list[str] = []

        async def ask() -> None:
            told.append(await account.token())

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ask)
        assert told == ["secret"] * 3
        assert await account.token() == "secret"
        [asked] = published.seen
    assert asked.method == "POST"
    assert asked.form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert claims(asked.form["assertion"])["scope"] == " ".join(SCOPES)


@pytest.mark.parametrize("answer", [Answer({"error": "invalid_grant"}, 400), Answer(b"no json")])
async def test_an_account_without_a_token_is_told(
    info: dict[str, Any], outbound: Outbound, answer: Answer
) -> None:
    with publishing() as published:
        published.answers["/token"] = answer
        account = ServiceAccount(outbound, {**info, "token_uri": f"{published.url}/token"})
        with pytest.raises(StoreUnavailable, match="no access token"):
            await account.token()


async def test_a_token_server_that_is_not_there_is_told(
    info: dict[str, Any], outbound: Outbound
) -> None:
    account = ServiceAccount(outbound, {**info, "token_uri": "http://127.0.0.1:1/token"})
    with pytest.raises(StoreUnavailable, match="no access token"):
        await account.token()


@pytest.mark.parametrize("bad", [{}, {"private_key": "secret-that-is-no-key"}], ids=str)
async def test_an_account_that_is_not_valid_is_told_without_its_key(
    info: dict[str, Any], outbound: Outbound, bad: dict[str, str]
) -> None:
    given = {**info, "token_uri": "http://127.0.0.1:1", **bad} if bad else {}
    with pytest.raises(StoreUnavailable, match="not valid") as raised:
        ServiceAccount(outbound, given)
    assert raised.value.__cause__ is None
    assert "secret-that" not in str(raised.value)


def claims(assertion: str) -> dict[str, Any]:
    part = assertion.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))

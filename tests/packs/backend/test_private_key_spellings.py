"""A user's private key is kept as a hash, however it is spelled: or the write is refused."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from toolgate.ports.documents import Set, Update, Write
from toolgate.ports.transforms import ArrayRemove, ArrayUnion
from toolgate.ports.users import complete_record, without_secrets
from toolgate.testing import Kit, opened_kit

pytestmark = pytest.mark.anyio

KEY = "pk_0123456789abcdef0123456789abcdef"
PATHS = ("users/eve", "users/eve/private/one")
OTHERWISE: list[dict[str, Any]] = [
    {"api.privateKey": KEY},
    {"api.privateKey.of": KEY},
    {"api.privateKey": {"of": KEY}},
    {"api": {"privateKey.of": KEY}},
    {"api": {"privateKey": {"of": KEY}}},
    {"api": {"privateKey": [KEY]}},
    {"api": [{"privateKey": KEY}]},
    {"api": [{"clientId": 1}, {"privateKey.of": KEY}]},
]
RIGHT = {"api": {"privateKey": KEY}}
spellings = st.sampled_from([RIGHT, *OTHERWISE])
other_fields = st.dictionaries(
    st.sampled_from(["api.clientId", "apis", "name", "a.b", "roles"]),
    st.one_of(st.integers(-9, 9), st.just({"x": 1}), st.just(["y"])),
    max_size=3,
)


@pytest.fixture(scope="module")
async def kit(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Kit]:
    async with opened_kit(tmp_path_factory.mktemp("keys"), writes=True) as opened:
        yield opened


async def everything(kit: Kit) -> str:
    """All that the tables hold of documents."""

    def read(connection: Any) -> str:
        tables = ("documents", "changes", "document_index")
        return repr([connection.execute(text(f"SELECT * FROM {one}")).all() for one in tables])

    return await kit.app.gate.database.read(read)


@given(
    spelled=spellings,
    others=other_fields,
    merge=st.booleans(),
    path=st.sampled_from(PATHS),
    again=spellings,
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_no_spelling_of_a_key_is_kept_in_plain_text(
    kit: Kit,
    spelled: dict[str, Any],
    others: dict[str, Any],
    merge: bool,
    path: str,
    again: dict[str, Any],
) -> None:
    for document in ({**others, **spelled}, {**spelled, **others}, again):
        outcome = await kit.call("firestore_write", path=path, document=document, merge=merge)
        right = (
            document.get("api") == RIGHT["api"] and document.keys() & {"api.privateKey"} == set()
        )
        assert outcome.status == (200 if right else 400), outcome.body
        if not right:
            assert "api.privateKey must be" in outcome.body["error"]
    collection = path.rpartition("/")[0]
    asked = {"queries": [{"collection": collection}]}
    shown = [await kit.call("firestore_read", path=path), await kit.send("firestore_query", asked)]
    assert all("privateKey" not in repr(one.body) for one in shown)
    assert KEY not in await everything(kit)


@pytest.mark.parametrize("document", OTHERWISE, ids=str)
async def test_a_refusal_says_how_a_key_is_written(kit: Kit, document: dict[str, Any]) -> None:
    outcome = await kit.call("firestore_write", path="users/bob", document=document)
    assert outcome.status == 400
    assert "api.privateKey must be" in outcome.body["error"]
    assert KEY not in str(outcome.body)
    assert (await kit.call("firestore_read", path="users/bob")).body == {}


@pytest.mark.parametrize(
    "write",
    [
        Update("users", "amy", {"api": [{"privateKey": KEY}]}),
        Update("users", "amy", {"api": {"privateKey.of": KEY}}),
        Update("users", "amy", {"api": ArrayUnion([{"privateKey": KEY}])}),
        Update("users", "amy", {"api": ArrayRemove([{"privateKey": KEY}])}),
        Update("users", "amy", {"api.privateKey.of": KEY}),
        Set("users", "amy", {"api": ArrayUnion([{"privateKey": KEY}])}),
        Set("users/amy/more", "one", {"api.privateKey": KEY}),
    ],
    ids=str,
)
async def test_updates_that_spell_a_key_otherwise_are_refused(kit: Kit, write: Write) -> None:
    store = kit.app.documents.of("backend")
    with pytest.raises(Exception, match=r"api\.privateKey must be"):
        async with kit.app.gate.database.transaction() as tx:
            await store.write(tx, Set("users", "amy", {"name": "Amy"}), write)
    assert KEY not in await everything(kit)


@pytest.mark.parametrize("document", [RIGHT, *OTHERWISE], ids=str)
def test_what_an_application_wrote_itself_is_not_shown_either(document: dict[str, Any]) -> None:
    record = {"name": "Eve", "api.clientId": 1, **document}
    for shown in (without_secrets(record), complete_record("eve", record)):
        assert KEY not in repr(shown)
        assert (shown["name"], shown["api.clientId"]) == ("Eve", 1)


async def test_fields_that_only_look_like_it_stay(kit: Kit) -> None:
    document = {"apis": {"privateKey": 1}, "x": {"api.privateKey": 2}, "api.clientId": 3}
    for path in ("users/joe", "orders/1"):
        written = await kit.call("firestore_write", path=path, document=document)
        assert written.status == 200, written.body
        found = (await kit.call("firestore_read", path=path)).body
        assert document.items() <= found.items()
    free = {"api.privateKey": "of an order"}
    assert (await kit.call("firestore_write", path="orders/2", document=free)).status == 200

"""API keys: made, checked, ended; kept as hashes only."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import select, text
from tests.statements import noted_statements

from toolgate.db.engine import Database
from toolgate.db.tables import keys
from toolgate.db.upgrades import upgrade
from toolgate.gate.principal import AgentType, Kind, Principal, Role
from toolgate.identity.keys import Keys, KeysOfPacks, UnknownKey

pytestmark = pytest.mark.anyio

SETTING = "the-key-from-the-settings"


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    opened = Database(database_url)
    await upgrade(opened)
    yield opened
    await opened.close()


@pytest.fixture
def ring(database: Database) -> Keys:
    return Keys(database, SETTING)


@contextmanager
def counted_compares(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    real, answers = hmac.compare_digest, list[bool]()

    def compare(one: Any, other: Any) -> bool:
        answers.append(real(one, other))
        return answers[-1]

    with monkeypatch.context() as patched:
        patched.setattr(hmac, "compare_digest", compare)
        yield answers


# Good keys ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "kind", "roles"),
    [
        (Role.ADMIN, Kind.ADMIN_KEY, {Role.ADMIN}),
        (Role.USER, Kind.USER, {Role.USER}),
        (Role.PUBLIC, Kind.USER, set[Role]()),
    ],
)
async def test_a_key_for_a_role_makes_its_holder_that(
    ring: Keys, role: Role, kind: Kind, roles: set[Role]
) -> None:
    made = await ring.create(role=role, user_id="u1")
    assert await ring.look_up(made.key) == Principal(
        kind=kind, id=f"key:{made.id}", roles=frozenset(roles), user_id="u1"
    )


@pytest.mark.parametrize("agent_type", AgentType)
async def test_a_key_for_an_agent_has_a_type_and_no_role(ring: Keys, agent_type: AgentType) -> None:
    made = await ring.create(agent_type=agent_type)
    assert await ring.look_up(made.key) == Principal(
        kind=Kind.AGENT, id=f"key:{made.id}", agent_type=agent_type
    )


async def test_a_key_of_a_node_speaks_for_that_node_alone(ring: Keys, database: Database) -> None:
    of_nodes = KeysOfPacks()
    key, other = [
        await database.write(lambda one, slug=slug: of_nodes.issue(one, slug)) for slug in "ab"
    ]
    found = await ring.look_up(key)
    assert found is not None
    assert found == Principal(kind=Kind.NODE, id=f"key:{key.split('_')[1]}", bound={"node_id": "a"})
    assert found.scope == {"node": "a"}
    await database.write(lambda one: of_nodes.revoke_all(one, "a"))
    assert await ring.look_up(key) is None
    assert await ring.look_up(other) is not None


async def test_the_key_of_the_settings_is_an_admin_without_a_row(ring: Keys) -> None:
    with noted_statements() as queries:
        found = await ring.look_up(SETTING)
    assert found == Principal(kind=Kind.ADMIN_KEY, id="admin-key", roles=frozenset({Role.ADMIN}))
    assert queries == []
    assert await ring.list() == []


async def test_without_a_key_in_the_settings_nothing_takes_its_place(database: Database) -> None:
    for given in ("", "None", SETTING):
        assert await Keys(database, None).look_up(given) is None


# Bad keys -------------------------------------------------------------------------------------


async def test_the_right_id_with_a_wrong_secret_is_nobody(ring: Keys) -> None:
    made = await ring.create(role=Role.ADMIN)
    other = await ring.create(role=Role.ADMIN)
    secret = made.key.split("_")[2]
    for wrong in (
        f"tg_{made.id}_{'0' * 64}",
        f"tg_{made.id}_{secret[:-1]}",
        f"tg_{made.id}_{secret}0",
        f"tg_{made.id}_{secret.upper()}",
        f"tg_{other.id}_{secret}",
    ):
        assert await ring.look_up(wrong) is None
    assert await ring.look_up(made.key) is not None


@pytest.mark.parametrize(
    "given",
    ["", "_", "__", "tg__", "tg_", "tg_a", "tg_a_b_c", "xx_a_b", "tg_%_b", "tg_a\0b_c", "Bearer x",
     "tg_' OR 1=1 --_x", "tg_é_x", "x" * 100_000],
)  # fmt: skip
async def test_what_is_no_key_is_nobody(ring: Keys, given: str) -> None:
    await ring.create(role=Role.ADMIN)
    assert await ring.look_up(given) is None


async def test_a_key_is_nobody_after_its_time(ring: Keys) -> None:
    over = await ring.create(role=Role.ADMIN, days=-1 / 86400)
    at_once = await ring.create(role=Role.ADMIN, days=0)
    still = await ring.create(role=Role.ADMIN, days=1)
    assert await ring.look_up(over.key) is None
    assert await ring.look_up(at_once.key) is None
    assert await ring.look_up(still.key) is not None


async def test_a_revoked_key_is_nobody_at_once_where_it_was_revoked(ring: Keys) -> None:
    made = await ring.create(role=Role.USER)
    assert await ring.look_up(made.key) is not None
    await ring.revoke(made.id)
    assert await ring.look_up(made.key) is None
    (row,) = await ring.list()
    assert row["revoked_at"] is not None


async def test_revoking_what_is_not_there_says_so(ring: Keys) -> None:
    made = await ring.create(role=Role.USER)
    await ring.revoke(made.id)
    for key_id in (made.id, "nowhere"):
        with pytest.raises(UnknownKey, match=key_id):
            await ring.revoke(key_id)


# What is kept ---------------------------------------------------------------------------------


async def test_only_the_hash_of_a_key_is_in_the_database(ring: Keys, database: Database) -> None:
    made = await ring.create(role=Role.ADMIN, user_id="u1", days=1)
    secret = made.key.split("_")[2]
    row = await database.read(lambda c: c.execute(select(keys)).one())
    assert bytes(row.hash) == hashlib.sha256(made.key.encode()).digest()
    kept = b"".join(one if isinstance(one, bytes) else str(one).encode() for one in row)
    assert secret.encode() not in kept
    assert bytes.fromhex(secret) not in kept


async def test_a_list_of_keys_shows_neither_key_nor_hash(ring: Keys) -> None:
    made = await ring.create(role=Role.ADMIN)
    (row,) = await ring.list()
    assert row["id"] == made.id
    assert "hash" not in row
    assert made.key.split("_")[2] not in str(row)


async def test_no_two_keys_are_alike(ring: Keys) -> None:
    made = [await ring.create(role=Role.USER) for _ in range(20)]
    assert len({one.key for one in made} | {one.id for one in made}) == 40
    assert [row["id"] for row in await ring.list()] == [one.id for one in made]


# The time it takes ----------------------------------------------------------------------------


async def test_a_key_is_found_with_one_query_however_many_there_are(ring: Keys) -> None:
    made = await ring.create(role=Role.USER)
    for many in (0, 200):
        for _ in range(many):
            await ring.create(role=Role.USER)
        with noted_statements() as queries:
            assert await ring.look_up(made.key) is not None
        assert len(queries) == 1
        assert "WHERE keys.id = " in queries[0]
        with noted_statements() as queries:
            assert await ring.look_up(f"tg_unknown_{'0' * 64}") is None
        assert len(queries) == 1


async def test_a_bad_key_is_never_remembered(ring: Keys, database: Database) -> None:
    made = await ring.create(role=Role.USER, days=-1)
    assert await ring.look_up(made.key) is None
    later = text("UPDATE keys SET expires_at = NULL")
    await database.write(lambda c: c.execute(later))
    assert await ring.look_up(made.key) is not None


async def test_secrets_are_compared_in_constant_time_also_for_unknown_ids(
    ring: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await ring.create(role=Role.USER)
    tries = [made.key, f"tg_{made.id}_{'0' * 64}", f"tg_unknown_{'0' * 64}"]
    compared: list[list[bool]] = []
    for one in tries:
        with counted_compares(monkeypatch) as answers:
            await ring.look_up(one)
        compared.append(answers)
    # Once with the setting's key, once with the row's hash, or with zeros where there is none.
    assert compared == [[False, True], [False, False], [False, False]]
    with counted_compares(monkeypatch) as answers:
        await ring.look_up(SETTING)
    assert answers == [True]


async def test_of_many_that_start_at_once_one_makes_the_first_admin_key(database_url: str) -> None:
    databases = [Database(database_url) for _ in range(4)]
    await upgrade(databases[0])
    made = await asyncio.gather(*(Keys(one).create_first() for one in databases))
    (key,) = [one for one in made if one]
    assert [row["id"] for row in await Keys(databases[0]).list()] == [key.id]
    await Keys(databases[0]).revoke(key.id)
    assert await Keys(databases[0]).create_first() is not None
    for one in databases:
        await one.close()

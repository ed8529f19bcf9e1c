"""Whatever is written to a tree and asked of it: every store says what nested dicts say."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.contract.tree.stores import KINDS, Tree, opened_tree, rtdb_server
from tests.effort import effort
from tests.rtdb import naive_tree

from toolgate.ports.tree import (
    Bound,
    Increment,
    Push,
    Remove,
    SetValue,
    TreeQuery,
    TreeWrite,
    UpdateChildren,
)

__all__ = ["rtdb_server"]

MANY = settings(
    max_examples=effort(15, 400),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
KEYS = st.sampled_from(["a", "b", "ab", "a b", "0", "1", "2", "10", "01", "-1", "~", "é", "😀"])
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, -1.5, 1e9])
SCALARS = st.booleans() | NUMBERS | st.sampled_from(["", "a", "b", "B", "10", "é", "\0"])
VALUES = st.recursive(
    st.none() | SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
PATHS = st.lists(KEYS, max_size=3).map("/".join)
BELOW = st.lists(KEYS, min_size=1, max_size=2).map("/".join)


def apart(changes: dict[str, Any]) -> bool:
    """Whether no path is above another."""
    paths = [path.split("/") for path in changes]
    return not any(
        one is not other and other[: len(one)] == one for one in paths for other in paths
    )


PLAIN_WRITES = (
    st.builds(SetValue, PATHS, VALUES)
    | st.builds(Remove, PATHS)
    | st.builds(Push, PATHS, VALUES)
    | st.builds(
        UpdateChildren, PATHS, st.dictionaries(BELOW, VALUES, min_size=1, max_size=3).filter(apart)
    )
)
INCREMENTS = st.builds(SetValue, PATHS, NUMBERS.map(Increment))
WRITES = st.lists(PLAIN_WRITES, min_size=1, max_size=3) | INCREMENTS.map(lambda one: [one])
BOUNDS = st.builds(Bound, st.none() | SCALARS, st.none() | KEYS)
KEY_BOUNDS = KEYS.map(Bound)


def queries(order_by: st.SearchStrategy[str], bounds: st.SearchStrategy[Bound]) -> Any:
    ends = st.fixed_dictionaries({}, optional={"start_at": bounds, "end_at": bounds})
    beyond = st.fixed_dictionaries({}, optional={"start_after": bounds, "end_before": bounds})
    limit = st.integers(1, 3)
    limits = st.fixed_dictionaries({}, optional={"limit_to_first": limit}) | st.fixed_dictionaries(
        {}, optional={"limit_to_last": limit}
    )
    within = ends | beyond | bounds.map(lambda bound: {"equal_to": bound})
    return st.builds(
        lambda by, given, limited: TreeQuery(by, **given, **limited), order_by, within, limits
    )


QUERIES = queries(st.just("$key"), KEY_BOUNDS) | queries(st.just("$value") | BELOW, BOUNDS)
NAMES = {
    "start_at": "startAt",
    "start_after": "startAfter",
    "end_at": "endAt",
    "end_before": "endBefore",
    "equal_to": "equalTo",
}


@dataclass
class Model:
    """The tree in nested dicts."""

    root: Any = None

    def has_scalar_above(self, writes: list[TreeWrite]) -> bool:
        """Whether it matters that what is written and removed at once was never there."""
        paths = [
            f"{write.path}/{below}"
            for write in writes
            for below in getattr(write, "changes", [getattr(write, "key", "")])
        ]
        above = [keys_of(path)[:size] for path in paths for size in range(len(keys_of(path)))]
        values = [naive_tree.look(self.root, keys) for keys in above]
        return any(value is not None and not isinstance(value, dict) for value in values)

    def write(self, write: TreeWrite) -> None:
        match write:
            case SetValue(path, Increment(by)):
                self._put(path, {".sv": {"increment": by}})
            case SetValue(path, value):
                self._put(path, value)
            case Push(path, value, key):
                self._put(f"{path}/{key}", value)
            case Remove(path):
                self._put(path, None)
            case UpdateChildren(path, changes):
                for below, value in changes.items():
                    self._put(f"{path}/{below}", value)

    def _put(self, path: str, value: Any) -> None:
        keys = keys_of(path)
        made = naive_tree.worked_out(value, naive_tree.look(self.root, keys), 0)
        self.root = naive_tree.put(self.root, keys, naive_tree.clean(made))

    def get(self, path: str) -> Any:
        return naive_tree.shown(naive_tree.look(self.root, keys_of(path)))

    def keys(self, path: str) -> list[str] | None:
        value = naive_tree.look(self.root, keys_of(path))
        return sorted(value, key=naive_tree.key_order) if isinstance(value, dict) else None

    def query(self, path: str, query: TreeQuery) -> list[tuple[str, Any]]:
        asked = {"orderBy": orjson.dumps(query.order_by).decode()}
        for ours, theirs in NAMES.items():
            if (bound := getattr(query, ours)) is not None:
                parts = [bound.value] if bound.key is None else [bound.value, bound.key]
                asked[theirs] = ",".join(orjson.dumps(part).decode() for part in parts)
        if query.limit_to_first:
            asked["limitToFirst"] = str(query.limit_to_first)
        if query.limit_to_last:
            asked["limitToLast"] = str(query.limit_to_last)
        found = naive_tree.query(naive_tree.look(self.root, keys_of(path)), asked)
        return [(key, naive_tree.shown(value)) for key, value in reversed(found.items())]


def keys_of(path: str) -> list[str]:
    inner = path.strip("/")
    return inner.split("/") if inner else []


@dataclass(frozen=True)
class Opened:
    """A store, and the loop it lives on."""

    tree: Tree
    run: Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=KINDS, scope="module")
def opened(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Opened]:
    with on_a_loop() as runner:
        folder = tmp_path_factory.mktemp("tree")
        store = opened_tree(request.param, folder, request.getfixturevalue)
        yield Opened(runner.run(store.__aenter__()), runner.run)
        runner.run(store.__aexit__(None, None, None))


@contextmanager
def on_a_loop() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@MANY
@given(st.lists(WRITES, min_size=1, max_size=4), PATHS)
def test_what_is_read_is_what_was_written(
    opened: Opened, batches: list[list[TreeWrite]], path: str
) -> None:
    async def check() -> None:
        tree, model = opened.tree, Model()
        await tree.remove("")
        for batch in batches:
            together = not model.has_scalar_above(batch)
            for writes in [batch] if together else [[write] for write in batch]:
                await tree.write(*writes)
            for write in batch:
                model.write(write)
            assert await tree.get() == model.get("")
            assert await tree.get(path) == model.get(path)
            found, keys = await tree.get(path, shallow=True), model.keys(path)
            assert (list(found) if isinstance(found, dict) else None) == keys
            if keys is None:
                assert found == model.get(path)

    opened.run(check())


@MANY
@given(
    st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=3) | VALUES, max_size=8),
    st.lists(QUERIES, min_size=1, max_size=8),
    st.sampled_from(["", "q", "q/a"]),
)
def test_a_query_finds_what_a_look_at_every_child_finds(
    opened: Opened, value: dict[str, Any], asked: list[TreeQuery], path: str
) -> None:
    async def check() -> None:
        tree, model = opened.tree, Model()
        writes = [Remove(""), SetValue(path, value), SetValue("r", {"beside": 1})]
        await tree.write(*writes)
        for write in writes:
            model.write(write)
        for query in asked:
            found = await tree.store.get(path, query)
            assert list(found.items()) == model.query(path, query)

    opened.run(check())


@MANY
@given(VALUES, VALUES, PATHS)
def test_a_transaction_sees_the_value_and_replaces_it(
    opened: Opened, before: Any, after: Any, path: str
) -> None:
    async def check() -> None:
        tree, model = opened.tree, Model()
        await tree.write(Remove(""), SetValue(path, before), SetValue("beside", 1))
        for write in (SetValue(path, before), SetValue("beside", 1)):
            model.write(write)
        seen: list[Any] = []

        def work(value: Any) -> Any:
            seen.append(value)
            return after

        stored = await tree.transact(path, work)
        assert seen == [model.get(path)]
        model.write(SetValue(path, after))
        assert stored == model.get(path)
        assert await tree.get() == model.get("")

    opened.run(check())

"""Whoever holds nearly all connections, and connects again and again, keeps no newcomer out."""

import pytest

from toolgate.sections import LimitSettings
from toolgate.transports.connection.table import ConnectionTable

CAPACITY = 64
RESERVE = CAPACITY // 8


class Peer:
    """A connection that is idle, unless it is said to be within a request."""

    is_answering = False

    def __init__(self, caller: str | None = None, *, is_idle: bool = True) -> None:
        self.caller = caller
        self.is_idle = is_idle
        self.closed = False

    def check_deadline(self, now: float) -> None: ...

    def stop_reading(self) -> None: ...

    def drop(self) -> None:
        self.closed = True


@pytest.fixture
def table() -> ConnectionTable:
    return ConnectionTable(LimitSettings(connections=CAPACITY), clock=lambda: 100.0)


def open_ones(peers: list[Peer]) -> int:
    return sum(not one.closed for one in peers)


def opened(
    table: ConnectionTable, caller: str, number: int, address: str = "192.0.2.1", **state: bool
) -> list[Peer]:
    """Connections on which a credential was accepted."""
    peers = [Peer(caller, **state) for _ in range(number)]
    for one in peers:
        assert table.add(one, address)
        table.set_caller(one, caller)
    return peers


@pytest.mark.parametrize("is_idle", [True, False], ids=["idle", "within requests"])
@pytest.mark.parametrize("with_key", [True, False], ids=["with its key", "without"])
def test_a_newcomer_keeps_its_place_until_its_request_has_come(
    table: ConnectionTable, is_idle: bool, with_key: bool
) -> None:
    greedy = opened(table, "greedy", CAPACITY - 1, is_idle=is_idle)
    newcomer = Peer()
    assert table.add(newcomer, "198.51.100.7")
    again: list[Peer] = []
    for _ in range(20 * CAPACITY):
        again.append(Peer("greedy" if with_key else None, is_idle=is_idle))
        assert table.add(again[-1], "192.0.2.1")
        if with_key:
            table.set_caller(again[-1], "greedy")
        assert not newcomer.closed
    assert len(table) == CAPACITY == open_ones(greedy) + open_ones(again) + 1


def test_from_many_addresses_it_has_as_many_turns_as_places_are_kept(
    table: ConnectionTable,
) -> None:
    opened(table, "greedy", CAPACITY - 1, is_idle=False)
    newcomer = Peer()
    assert table.add(newcomer, "198.51.100.7")
    for number in range(RESERVE):
        assert not newcomer.closed
        assert table.add(Peer(), f"192.0.2.{number}")
    assert newcomer.closed, "the oldest of those without credentials goes"


def test_who_has_no_credentials_takes_no_more_than_what_is_kept_from_who_has(
    table: ConnectionTable,
) -> None:
    callers = opened(table, "a", 30) + opened(table, "b", 34)
    for number in range(20 * CAPACITY):
        assert table.add(Peer(), f"192.0.2.{number}")
    assert open_ones(callers) == CAPACITY - RESERVE


def test_the_caller_with_the_most_connections_gives_up_its_own(table: ConnectionTable) -> None:
    few = opened(table, "few", 20)
    many = opened(table, "many", 30)
    some = opened(table, "some", 14)
    for number in range(10):
        opened(table, f"new{number}", 1)
    assert [open_ones(one) for one in (few, many, some)] == [20, 20, 14]


def test_idle_ones_go_before_those_within_a_request_unless_one_caller_has_half(
    table: ConnectionTable,
) -> None:
    idle = opened(table, "idle", 2)
    busy = opened(table, "busy", CAPACITY // 2, is_idle=False)
    rest = opened(table, "rest", CAPACITY // 2 - 2, is_idle=False)
    opened(table, "new", 1, is_idle=False)
    assert [open_ones(one) for one in (idle, busy, rest)] == [1, 32, 30]
    opened(table, "new", 1, is_idle=False)
    opened(table, "new", 1, is_idle=False)
    assert [open_ones(one) for one in (idle, busy, rest)] == [0, 31, 30]
    busy += opened(table, "busy", 5, is_idle=False)
    assert open_ones(busy) <= CAPACITY // 2 + 1


def test_who_is_answered_keeps_its_place_though_its_caller_has_the_most(
    table: ConnectionTable,
) -> None:
    many = opened(table, "many", CAPACITY - 3)
    few = opened(table, "few", 3)
    for one in many:
        one.is_answering = True
        one.is_idle = False
    assert table.add(Peer(), "198.51.100.7")
    assert [open_ones(one) for one in (many, few)] == [CAPACITY - 3, 2]


def test_who_has_had_a_request_without_credentials_goes_before_newcomers(
    table: ConnectionTable,
) -> None:
    newcomer, stranger = Peer(), Peer()
    for one in (newcomer, stranger):
        assert table.add(one, "198.51.100.7")
    table.note_request(stranger)
    table.note_request(stranger)
    opened(table, "many", CAPACITY - 2)
    assert table.add(Peer(), "192.0.2.1")
    assert (newcomer.closed, stranger.closed) == (False, True)

"""Keys that sort by the time they were made."""

import threading

from toolgate.ports.push_ids import ALPHABET, PushIds, push_id
from toolgate.ports.tree_order import integer_of


def test_a_key_has_20_characters_of_an_alphabet_in_order() -> None:
    key = push_id()
    assert len(key) == 20
    assert set(key) <= set(ALPHABET)
    assert sorted(ALPHABET) == list(ALPHABET)
    assert integer_of(key) is None


def test_a_thousand_keys_of_one_millisecond_rise() -> None:
    make = PushIds(lambda: 1_800_000_000.123)
    keys = [make() for _ in range(1000)]
    assert keys == sorted(set(keys))
    assert len({key[:8] for key in keys}) == 1


def test_keys_rise_with_the_clock_and_when_it_is_set_back() -> None:
    times = iter([5.0, 5.001, 4.0, 4.5, 6.0])
    make = PushIds(lambda: next(times))
    keys = [make() for _ in range(5)]
    assert keys == sorted(set(keys))


def test_the_eight_first_characters_are_the_time() -> None:
    key = PushIds(lambda: 0.065)()
    assert key[:8] == "------00"


def test_when_chance_runs_out_the_time_goes_on() -> None:
    make = PushIds(lambda: 1.0)
    first = make()
    make._chance = 2**72 - 1
    second = make()
    assert second > first
    assert second[:8] > first[:8]


def test_threads_never_get_the_same_key() -> None:
    make = PushIds(lambda: 1.0)
    made: list[list[str]] = []

    def work() -> None:
        made.append([make() for _ in range(500)])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(keys == sorted(keys) for keys in made)
    assert len({key for keys in made for key in keys}) == 2000

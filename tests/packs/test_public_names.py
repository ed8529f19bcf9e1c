"""What a pack of another package is given, it can name."""

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import pytest

import toolgate.pack as tg
from toolgate.gate.offer import Offer, Site


def classes(hint: Any) -> Iterator[type]:
    """The classes that an annotation is made of."""
    if isinstance(hint, type) and hint.__module__.startswith("toolgate."):
        yield hint
    origin = getattr(hint, "__origin__", None)
    if isinstance(origin, type) and origin.__module__.startswith("toolgate."):
        yield origin
    for part in get_args(hint):
        for one in part if isinstance(part, list) else [part]:
            yield from classes(one)


@pytest.mark.parametrize("given", [Site, Offer], ids=["site", "offer"])
def test_every_type_of_the_door_is_a_public_name(given: type) -> None:
    hints = {name: [*classes(hint)] for name, hint in get_type_hints(given).items()}
    named = {one for found in hints.values() for one in found}
    assert len(named) > 5
    assert {one.__name__ for one in named if getattr(tg, one.__name__, None) is not one} == set()


def test_every_public_name_is_listed_and_there() -> None:
    assert {name for name in tg.__all__ if not hasattr(tg, name)} == set()
    assert len(set(tg.__all__)) == len(tg.__all__)

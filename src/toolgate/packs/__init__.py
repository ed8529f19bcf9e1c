"""The packs that ship with toolgate, and those that other packages bring.

This is the only file outside a pack that imports one.
"""

import traceback
from collections.abc import Iterable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from toolgate.setting_types import BadSettings

if TYPE_CHECKING:
    from toolgate.gate.offer import AnyOffer

BUILT_IN = ("appdata", "backend", "content")
"""Enabled unless the settings name others."""
ON_REQUEST = ("orchestrator",)
"""These ship too, but are enabled by name only: not all of their tools are there yet."""
READ_BY_OWN_TOOLS = "appdata"
"""The pack whose documents a user's own tools read."""
GROUP = "toolgate.packs"
"""Entry points of this group name the `OFFER` of a pack in another package."""


class UnknownPack(BadSettings):
    """There is no such pack; the message names those there are."""


class BrokenPack(BadSettings):
    """A pack of another package cannot be loaded; the message says where it fails."""

    def __init__(self, name: str, entry: EntryPoint, problem: Exception) -> None:
        package = f"{entry.dist.name} {entry.dist.version}" if entry.dist else entry.value
        place = _place(problem)
        what = f"{type(problem).__name__}: {problem}"
        super().__init__(
            f"Pack {name!r} ({package}) cannot be loaded: {place}{what}. Mend it, or take it out "
            "of the setting packs.enabled."
        )


def _place(problem: Exception) -> str:
    """The line of the pack's own that an error comes from, as `FILE:LINE: `."""
    if isinstance(problem, SyntaxError):
        return f"{problem.filename}:{problem.lineno}: "
    ours = str(Path(__file__).parents[1])
    frames = traceback.extract_tb(problem.__traceback__)
    own = [
        one
        for one in frames
        if not one.filename.startswith((ours, "<")) and "importlib" not in one.filename
    ]
    return f"{own[-1].filename}:{own[-1].lineno}: " if own else ""


def sources() -> list[tuple[str, str]]:
    """Every pack that can be enabled, with the package it comes from."""
    of_others = [
        (one.name, f"{one.dist.name} {one.dist.version}" if one.dist else one.value)
        for one in entry_points(group=GROUP)
    ]
    return [*((name, "toolgate") for name in BUILT_IN + ON_REQUEST), *sorted(of_others)]


def known_names() -> list[str]:
    """The names of every pack that can be enabled."""
    return [name for name, _ in sources()]


def offers(names: Iterable[str] | None = None) -> "tuple[AnyOffer, ...]":
    """What the packs of these names bring, or those enabled by default; no other is imported."""
    # Imported here: naming packs should cost nothing.
    from toolgate.gate.offer import check_offer  # noqa: PLC0415

    loaded: list[AnyOffer] = []
    for name in dict.fromkeys(BUILT_IN if names is None else names):
        offer = _offer(name)
        check_offer(offer, loaded)
        loaded.append(offer)
    return tuple(loaded)


def _offer(name: str) -> "AnyOffer":
    if name in BUILT_IN + ON_REQUEST:
        return import_module(f"{__name__}.{name}").OFFER
    entries = entry_points(group=GROUP, name=name)
    if not entries:
        options = ", ".join(known_names())
        raise UnknownPack(
            f"Setting packs.enabled: there is no pack {name!r}. There are: {options}."
        )
    from toolgate.gate.offer import Offer  # noqa: PLC0415

    entry = next(iter(entries))
    try:
        offer: Any = entry.load()
    except Exception as problem:
        raise BrokenPack(name, entry, problem) from problem
    if not isinstance(offer, Offer) or offer.pack.name != name:
        raise UnknownPack(f"The entry point of pack {name!r} is not an Offer of that name.")
    return cast("AnyOffer", offer)

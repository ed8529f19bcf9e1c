"""The packs that ship with toolgate, and those that other packages bring.

This is the only file outside a pack that imports one.
"""

import traceback
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from toolgate.setting_types import BadSettings

if TYPE_CHECKING:
    from toolgate.gate.offer import AnyOffer

DEFAULT = ("appdata", "backend", "content")
"""Enabled unless the settings name others."""
SHIPPED = (*DEFAULT, "orchestrator", "network")
"""Every pack of toolgate's own; one that lacks some of its tools is enabled by name only."""
READ_BY_OWN_TOOLS = "appdata"
"""The pack whose documents a user's own tools read."""
GROUP = "toolgate.packs"
"""Entry points of this group name the `OFFER` of a pack in another package."""


class UnknownPack(BadSettings):
    """There is no such pack; the message names those there are."""


class BrokenPack(BadSettings):
    """A pack of another package fails before it can be called; the message says where."""

    def __init__(self, name: str, failing: str, problem: Exception) -> None:
        package = dict(sources()).get(name, "not installed")
        what = f"{_place(name, problem)}{type(problem).__name__}: {str(problem).rstrip('.')}"
        super().__init__(
            f"Pack {name!r} ({package}) cannot {failing}: {what}. Fix it, or remove it from "
            "packs.enabled."
        )


@contextmanager
def attribute_errors(name: str, failing: str) -> Generator[None]:
    """Raise `BrokenPack` where a pack of another package fails by itself."""
    try:
        yield
    except Exception as problem:
        from toolgate.db.outages import is_outage  # noqa: PLC0415
        from toolgate.ports.documents import StoreUnavailable  # noqa: PLC0415

        not_its_own = isinstance(problem, BadSettings | StoreUnavailable) or is_outage(problem)
        if not_its_own or name in SHIPPED:
            raise
        raise BrokenPack(name, failing, problem) from problem


def _place(name: str, problem: Exception) -> str:
    """The line of the pack's own that an error comes from, as `FILE:LINE: `."""
    if isinstance(problem, SyntaxError):
        return f"{problem.filename}:{problem.lineno}: "
    folders = tuple(_folders(name))
    frames = traceback.extract_tb(problem.__traceback__)
    own = [one for one in frames if one.filename.startswith(folders)]
    return f"{own[-1].filename}:{own[-1].lineno}: " if own else ""


def _folders(name: str) -> Iterator[str]:
    """Where the code of a pack is: folders, or the one file that it is."""
    for entry in entry_points(group=GROUP, name=name):
        spec = find_spec(entry.module.partition(".")[0])
        if spec is not None:
            yield from spec.submodule_search_locations or [spec.origin or ""]


def sources() -> list[tuple[str, str]]:
    """Every pack that can be enabled, with the package it comes from."""
    of_others = [
        (one.name, f"{one.dist.name} {one.dist.version}" if one.dist else one.value)
        for one in entry_points(group=GROUP)
    ]
    return [*((name, "toolgate") for name in SHIPPED), *sorted(of_others)]


def known_names() -> list[str]:
    """The names of every pack that can be enabled."""
    return [name for name, _ in sources()]


def disabled_pack_of(tool: str, enabled: Iterable[str] | None) -> str | None:
    """The pack of toolgate's own that has a tool of this name, but is not enabled."""
    names = set(DEFAULT if enabled is None else enabled)
    for offer in offers(name for name in SHIPPED if name not in names):
        if any(tool in (one.name, one.alias) for one in offer.tools):
            return offer.pack.name
    return None


def offers(names: Iterable[str] | None = None) -> "tuple[AnyOffer, ...]":
    """What the packs of these names bring, or those enabled by default; no other is imported."""
    # Imported here: naming packs should cost nothing.
    from toolgate.gate.offer import check_offer  # noqa: PLC0415

    loaded: list[AnyOffer] = []
    for name in dict.fromkeys(DEFAULT if names is None else names):
        with attribute_errors(name, "be loaded"):
            offer = _offer(name)
            check_offer(offer, loaded)
        loaded.append(offer)
    return tuple(loaded)


def _offer(name: str) -> "AnyOffer":
    if name in SHIPPED:
        return import_module(f"{__name__}.{name}").OFFER
    entries = entry_points(group=GROUP, name=name)
    if not entries:
        options = ", ".join(known_names())
        raise UnknownPack(
            f"Setting packs.enabled: there is no pack {name!r}. There are: {options}."
        )
    from toolgate.gate.offer import Offer  # noqa: PLC0415

    entry = next(iter(entries))
    offer: Any = entry.load()
    entry_point = f"The entry point of pack {name!r} ({entry.value})"
    if not isinstance(offer, Offer):
        raise UnknownPack(f"{entry_point} must be an Offer, not {type(offer).__name__}.")
    if offer.pack.name != name:
        raise UnknownPack(
            f"{entry_point} is the Offer of pack {offer.pack.name!r}. Use one name for both."
        )
    return cast("AnyOffer", offer)

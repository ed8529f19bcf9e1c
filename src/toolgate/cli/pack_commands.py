"""Commands that packs bring along, found when they are typed or listed."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from typer import Typer
from typer.core import TyperGroup
from typer.main import get_group

if TYPE_CHECKING:
    from toolgate.gate.offer import AnyOffer


class PackCommandGroup(TyperGroup):
    """The built-in commands, and one group for every pack that has commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        return [*super().list_commands(ctx), *(offer.pack.name for offer in _packs_with_commands())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name."""
        if found := super().get_command(ctx, cmd_name):
            return found
        for offer in _packs_with_commands():
            if offer.pack.name == cmd_name:
                return _group(offer, self.rich_markup_mode)
        return None


def _packs_with_commands() -> "list[AnyOffer]":
    """The packs in use that have commands; those that ship, where the settings cannot be read."""
    from toolgate import packs
    from toolgate.settings import BadSettings, read_settings

    try:
        enabled = read_settings().packs.enabled
    except BadSettings:  # the command that is run says so
        enabled = None
    return [offer for offer in packs.offers(enabled) if offer.commands]


def _group(offer: "AnyOffer", markup: Any) -> Any:
    module, _, name = (offer.commands or "").partition(":")
    group = cast("Callable[[], Typer]", getattr(import_module(module), name))()
    group.info.name = offer.pack.name
    group.rich_markup_mode = markup
    return get_group(group)

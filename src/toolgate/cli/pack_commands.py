"""Commands that packs bring along, found when they are typed or listed."""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from typer import Typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from toolgate.cli.problems import Stop

if TYPE_CHECKING:
    from toolgate.gate.offer import AnyOffer


class PackCommandGroup(TyperGroup):
    """The built-in commands, and one group for every pack that has commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of all commands."""
        return [*super().list_commands(ctx), *(offer.pack.name for offer in _packs_with_commands())]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name."""
        if command := super().get_command(ctx, cmd_name):
            return command
        for offer in _packs_with_commands():
            if offer.pack.name == cmd_name:
                return _command(offer, self.rich_markup_mode)
        return None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the arguments begin with; of a pack without one it is said why."""
        if not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            _check_pack(args[0])
        return super().resolve_command(ctx, args)


def _check_pack(name: str) -> None:
    """Refuse the name of a pack that cannot have this command now."""
    from toolgate import packs

    if name not in packs.known_names():
        return
    enabled = _enabled_packs()
    if name in (packs.DEFAULT if enabled is None else enabled):
        raise Stop(f"Pack {name!r} has no commands.")
    raise Stop(
        f"Pack {name!r} is not enabled, so there are no commands of it. Name it in the setting "
        "packs.enabled, beside the packs that you have."
    )


def _packs_with_commands() -> "list[AnyOffer]":
    """The packs in use that have commands; those that ship, where the settings cannot be read."""
    from toolgate import packs

    return [offer for offer in packs.offers(_enabled_packs()) if offer.commands]


def _enabled_packs() -> Sequence[str] | None:
    from toolgate.settings import BadSettings, read_settings

    try:
        return read_settings().packs.enabled
    except BadSettings:  # the command that is run says so
        return None


def _command(offer: "AnyOffer", markup: Any) -> Any:
    """The pack's group; where it is broken, a command that says so, and `--help` lists the rest."""
    from toolgate import packs

    try:
        with packs.attribute_errors(offer.pack.name, f"bring its commands ({offer.commands})"):
            return _group(offer, markup)
    except packs.BrokenPack as broken:
        return _broken_command(offer.pack.name, broken)


def _group(offer: "AnyOffer", markup: Any) -> Any:
    module, _, name = (offer.commands or "").partition(":")
    group = cast("Callable[[], Typer]", getattr(import_module(module), name))()
    group.info.name = offer.pack.name
    group.rich_markup_mode = markup
    return get_group(group)


def _broken_command(name: str, broken: Exception) -> TyperCommand:
    def fail(**_: Any) -> None:
        raise broken

    anything = {"ignore_unknown_options": True, "allow_extra_args": True}
    return TyperCommand(name, callback=fail, help=str(broken), context_settings=anything)

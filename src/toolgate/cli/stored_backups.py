"""The backups that `create_backup` stored, as `toolgate backup --list` shows them."""

from typing import TYPE_CHECKING, Any

from toolgate.cli import environment
from toolgate.cli.output import note, say, say_json, table, warning

if TYPE_CHECKING:
    from toolgate.settings import Settings

MEGABYTE = 1_000_000


def list_stored(settings: "Settings", *, as_json: bool) -> None:
    """List them, oldest first; of what is no backup, its name."""
    found: dict[str, Any] = environment.run_async(lambda: _found(settings))
    if as_json:
        return say_json(found)
    whole, unfinished = found["backups"], found["unfinished"]
    if whole:
        rows = [(one["name"], f"{one['bytes'] / MEGABYTE:,.1f} MB", one["state"]) for one in whole]
        table(("name", "size", "state"), rows)
    else:
        say("There is no stored backup. `toolgate call create_backup` makes one.")
    if unfinished:
        told = "is being made, or was never finished; the next backup removes what is left"
        note(f"{warning('No backup:')} {', '.join(unfinished)} {told}.")
    return None


async def _found(settings: "Settings") -> dict[str, Any]:
    from toolgate.app import offers_of
    from toolgate.backups.stored import StoredBackups
    from toolgate.blob_stores import BlobStores

    stores = BlobStores(settings, existing=True)
    whole: list[dict[str, Any]] = []
    unfinished: list[str] = []
    for offer in offers_of(settings):
        backups = StoredBackups(stores.of(offer.pack.name))
        unfinished += await backups.unfinished()
        for one in await backups.whole():
            damage = await backups.damage(one)
            state = f"damaged: {damage}" if damage else "whole"
            whole.append({"name": one.name, "bytes": one.size, "state": state})
    return {"backups": whole, "unfinished": unfinished}

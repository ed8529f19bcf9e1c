"""Demo data: loaded once into packs that hold nothing yet, never over anybody's own."""

from toolgate.app import App
from toolgate.gate.offer import NotForDemo

__all__ = ["NotForDemo", "load_demo"]


async def load_demo(app: App) -> dict[str, int]:
    """Let each pack store its demo data; return how many records each stored.

    Raises `NotForDemo` where a pack refused, after the others had their turn.
    """
    stored: dict[str, int] = {}
    refusals: list[str] = []
    for offer in app.gate.catalogue.offers:
        if offer.demo is None:
            continue
        name = offer.pack.name
        try:
            stored[name] = await offer.demo(app.worlds[name].world, app.site_of(name))
        except NotForDemo as refusal:
            refusals.append(str(refusal))
    if refusals:
        raise NotForDemo(" ".join(refusals))
    return stored

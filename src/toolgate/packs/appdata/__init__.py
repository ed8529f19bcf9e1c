"""Pack `appdata`: an application's documents, permissions and data model."""

from toolgate.gate.catalogue import Offer
from toolgate.packs.appdata import documents, permissions, prompts, schema


def offer() -> Offer:
    """What this pack brings along."""
    return Offer(
        tools=(*documents.family.tools, *permissions.family.tools, *schema.family.tools),
        resources=schema.RESOURCES,
        prompts=prompts.PROMPTS,
    )

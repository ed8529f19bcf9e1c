"""Pack `content`: what a site has published, project by project, to be read only."""

from toolgate.gate.catalogue import Offer
from toolgate.packs.content import blocks, entities, graph, performance, projects


def offer() -> Offer:
    """What this pack brings along."""
    families = (projects, entities, graph, performance, blocks)
    return Offer(tools=tuple(tool for module in families for tool in module.family.tools))

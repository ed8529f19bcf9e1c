"""What the pack's handlers may ask."""

from dataclasses import dataclass

from toolgate.gate.cursors import Cursors
from toolgate.gate.tool_directory import ToolDirectory
from toolgate.packs.orchestrator.access_rules import AccessRules
from toolgate.packs.orchestrator.administration import Administration
from toolgate.packs.orchestrator.artifacts.blob_names import BlobNames
from toolgate.packs.orchestrator.artifacts.reaper import Reaper
from toolgate.packs.orchestrator.artifacts.store import Artifacts
from toolgate.packs.orchestrator.models import Models
from toolgate.packs.orchestrator.nodes.liveness import Liveness
from toolgate.packs.orchestrator.nodes.store import Nodes
from toolgate.packs.orchestrator.records import Records
from toolgate.packs.orchestrator.skills.content_audit import ContentAudit
from toolgate.packs.orchestrator.skills.store import Skills
from toolgate.packs.orchestrator.work import Work
from toolgate.ports.blobs import Blobs


@dataclass(frozen=True, slots=True)
class OrchestratorWorld:
    """The records of a team of agents."""

    settings: Records
    preferences: Records
    work: Work
    administration: Administration
    access_rules: AccessRules
    skills: Skills
    content_audit: ContentAudit
    nodes: Nodes
    models: Models
    liveness: Liveness
    artifacts: Artifacts
    blobs: Blobs
    blob_names: BlobNames
    reaper: Reaper
    cursors: Cursors
    tools: ToolDirectory

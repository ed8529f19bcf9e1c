"""Pack `orchestrator`: tasks, projects, settings and preferences of a team of agents."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import resources

from toolgate.background import run_in_background
from toolgate.db.schemas import Schema
from toolgate.gate.offer import Offer, Site
from toolgate.packs.orchestrator import access_check, demo
from toolgate.packs.orchestrator.artifacts.blob_names import names_of
from toolgate.packs.orchestrator.artifacts.reaper import Reaper
from toolgate.packs.orchestrator.nodes.liveness import Liveness
from toolgate.packs.orchestrator.pack import ORCHESTRATOR
from toolgate.packs.orchestrator.records import (
    PREFERENCE_QUOTA,
    RESERVED_PREFERENCE_QUOTA,
    RESERVED_SETTING_QUOTA,
    SETTING_QUOTA,
)
from toolgate.packs.orchestrator.settings import OrchestratorSettings
from toolgate.packs.orchestrator.skills.content_audit import ContentAudit
from toolgate.packs.orchestrator.skills.retention import VersionRetention
from toolgate.packs.orchestrator.sql.access_rules import SqlAccessRules
from toolgate.packs.orchestrator.sql.administration import SqlAdministration
from toolgate.packs.orchestrator.sql.artifacts import SqlArtifacts
from toolgate.packs.orchestrator.sql.key_warnings import key_warnings
from toolgate.packs.orchestrator.sql.models import SqlModels
from toolgate.packs.orchestrator.sql.nodes import SqlNodes
from toolgate.packs.orchestrator.sql.records import SqlRecords
from toolgate.packs.orchestrator.sql.skills import SqlSkills
from toolgate.packs.orchestrator.sql.tables import metadata, preferences, settings
from toolgate.packs.orchestrator.sql.tool_switches import hand_over
from toolgate.packs.orchestrator.sql.work import SqlWork
from toolgate.packs.orchestrator.tools import artifacts as artifact_tools
from toolgate.packs.orchestrator.tools import help as help_tools
from toolgate.packs.orchestrator.tools import (
    models,
    nodes,
    projects,
    skills,
    system_settings,
    tasks,
    worker_nodes,
)
from toolgate.packs.orchestrator.tools import preferences as preference_tools
from toolgate.packs.orchestrator.tools.operator import FAMILIES as OPERATOR_FAMILIES
from toolgate.packs.orchestrator.vocabulary import RESERVED_PREFERENCES, RESERVED_SETTINGS
from toolgate.packs.orchestrator.world import OrchestratorWorld

FAMILIES = (
    artifact_tools.family,
    *(one.family for one in (nodes, models, skills, help_tools, tasks, system_settings)),
    *(one.family for one in (preference_tools, projects, worker_nodes)),
    *OPERATOR_FAMILIES,
)


@asynccontextmanager
async def opened(site: Site, section: OrchestratorSettings) -> AsyncGenerator[OrchestratorWorld]:
    """The pack's ports."""
    liveness = Liveness(section.node_inactive_seconds)
    rows, blobs, names = (
        SqlArtifacts(site.database, section.task_quota),
        site.blobs(),
        names_of(site.cursors),
    )
    world = OrchestratorWorld(
        settings=SqlRecords(
            site.database,
            settings,
            changed=hand_over,
            quota=SETTING_QUOTA,
            reserved=RESERVED_SETTINGS,
            reserved_quota=RESERVED_SETTING_QUOTA,
        ),
        preferences=SqlRecords(
            site.database,
            preferences,
            quota=PREFERENCE_QUOTA,
            reserved=RESERVED_PREFERENCES,
            reserved_quota=RESERVED_PREFERENCE_QUOTA,
        ),
        work=SqlWork(site.database),
        administration=SqlAdministration(site.database, site.keys),
        access_rules=SqlAccessRules(site.database, site.epoch),
        skills=SqlSkills(site.database),
        content_audit=ContentAudit(section.patterns),
        nodes=SqlNodes(site.database, liveness, site.keys),
        models=SqlModels(site.database, liveness),
        liveness=liveness,
        artifacts=rows,
        blobs=blobs,
        blob_names=names,
        reaper=Reaper(blobs, rows, names.folder),
        cursors=site.cursors,
        tools=site.tools,
    )
    async with run_in_background(world.reaper.run, VersionRetention(world.skills).run):
        yield world


OFFER = Offer(
    pack=ORCHESTRATOR,
    tools=tuple(tool for family in FAMILIES for tool in family.tools),
    settings=OrchestratorSettings,
    open=opened,
    schema=Schema(
        metadata, "toolgate.packs.orchestrator.migrations", version_table="orchestrator_version"
    ),
    demo=demo.load,
    access=access_check.check,
    access_rule=access_check.describe,
    key_warnings=key_warnings,
    rules=(resources.files(__name__) / "rules.cedar").read_text(encoding="utf-8"),
    complete=False,
)

"""Tools for operators: what agents work on and with is arranged here, never by agents."""

from toolgate.packs.orchestrator.tools.operator import (
    access_rules,
    history,
    models,
    nodes,
    people,
    projects,
    skills,
    work,
)

FAMILIES = tuple(
    one.family for one in (people, projects, work, access_rules, history, skills, nodes, models)
)

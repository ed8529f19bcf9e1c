"""What access rules keep out of lists, as a condition of SQL."""

from typing import Any

from sqlalchemy import ColumnElement, and_, exists, true

from toolgate.packs.orchestrator.access_rules import NONE_DENIED, DeniedProjects
from toolgate.packs.orchestrator.sql.tables import access_rules


def not_denied(
    denied: DeniedProjects, project_id: ColumnElement[Any], name: ColumnElement[Any]
) -> ColumnElement[bool]:
    """Of rows with a project's id and a name (an id or a slug) that rules may speak of."""
    if denied == NONE_DENIED:
        return true()
    if denied.every:
        rules = access_rules.c
        about = and_(rules.subject_type == "project", rules.subject_id == project_id)
        return ~exists().where(about, rules.effect == "deny")
    whole = [one.project_id for one in denied.some if one.only is None]
    conditions = [project_id.not_in(whole)] if whole else []
    conditions += [
        ~and_(project_id == one.project_id, name.in_(sorted(one.only)))
        for one in denied.some
        if one.only is not None
    ]
    return and_(true(), *conditions)

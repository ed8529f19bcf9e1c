"""What is limited is said with its number in the tool's description, before it is in the way."""

import pytest

from toolgate import packs
from toolgate.gate.catalogue import Catalogue
from toolgate.packs.orchestrator.models import MAX_ARTIFACTS, MAX_VERSIONS
from toolgate.packs.orchestrator.records import KEPT_VERSIONS, PREFERENCE_QUOTA, SETTING_QUOTA
from toolgate.packs.orchestrator.settings import OrchestratorSettings
from toolgate.packs.orchestrator.skills import store

TOLD = {
    "skills.create": [store.MAX_SKILLS, 256],
    "skills.update": [store.MAX_SKILLS],
    "db.preference.create": [PREFERENCE_QUOTA.records, PREFERENCE_QUOTA.value_bytes // 1024, 64],
    "db.preference.update": [PREFERENCE_QUOTA.records],
    "db.system_setting.create": [SETTING_QUOTA.records, SETTING_QUOTA.value_bytes // 1024],
    "artifact.put": [OrchestratorSettings().task_artifacts, 1024, 10],
    "operator.model.add_version": [MAX_VERSIONS],
    "operator.model.add_artifact": [MAX_ARTIFACTS],
    "operator.skill.versions": [store.KEPT_VERSIONS, store.KEPT_OF_DELETED, store.KEPT_DAYS],
    "operator.preference.history": [KEPT_VERSIONS],
    "operator.system_setting.history": [KEPT_VERSIONS],
}


@pytest.mark.parametrize("name", TOLD)
def test_a_quota_is_told_before_it_is_used_up(name: str) -> None:
    tool = Catalogue(packs.offers(["orchestrator"])).find(name)
    assert tool is not None
    told = f"{tool.description} {tool.input_schema}"
    assert [number for number in TOLD[name] if f"{number:,}" not in told] == []

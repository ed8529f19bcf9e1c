"""Settings of pack `orchestrator`."""

from toolgate.setting_types import Section


class OrchestratorSettings(Section):
    """Pack `orchestrator`."""

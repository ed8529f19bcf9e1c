"""Settings of backups."""

from pydantic import Field

from toolgate.setting_types import Section


class BackupSettings(Section):
    """Backups that `create_backup` makes."""

    keep: int = Field(
        default=7,
        ge=1,
        le=10_000,
        description="How many are kept; each new one removes the oldest beyond that.",
    )

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
    days: int | None = Field(
        default=None,
        ge=1,
        le=36_500,
        description="After how many days one is removed, when a new one is made. If unset, none is "
        "removed for its age.",
    )

"""Settings of pack `appdata`."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from toolgate.setting_types import Section


class AppDataSettings(Section):
    """Pack `appdata`."""

    borrowed: ClassVar[Mapping[str, str]] = {"MCP_ENABLE_WRITES": "writes"}
    switches: ClassVar[Mapping[str, str]] = {"appdata_writes": "writes"}

    writes: bool = Field(
        default=False, description="Allow creating documents; also MCP_ENABLE_WRITES=true."
    )
    collections: Path | None = Field(
        default=None,
        description="TOML file with the collections that the tools may touch; if unset, the "
        "built-in twelve.",
    )

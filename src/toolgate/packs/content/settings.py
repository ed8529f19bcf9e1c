"""Settings of pack `content`."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field

from toolgate.setting_types import Section


class ContentSettings(Section):
    """Pack `content`."""

    borrowed: ClassVar[Mapping[str, str]] = {"DEFAULT_PROJECT_ID": "default_project"}

    default_project: str = Field(
        default="00000000-0000-4000-a000-000000000001",
        description="Project for HTTP requests that name none; also DEFAULT_PROJECT_ID.",
    )

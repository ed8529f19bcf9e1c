"""Settings of pack `backend`."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal
from uuid import NAMESPACE_URL, UUID

from pydantic import Field

from toolgate.setting_types import Section


class BackendSettings(Section):
    """Pack `backend`."""

    borrowed: ClassVar[Mapping[str, str]] = {"BACKEND_MANAGER_NAMESPACE": "namespace"}

    namespace: UUID = Field(
        default=NAMESPACE_URL,
        description="Default namespace of `generate_uuid`, a UUID; also BACKEND_MANAGER_NAMESPACE. "
        "Unless set, the namespace of URLs.",
    )
    products: Path | None = Field(
        default=None,
        description="TOML file with what is sold: names, prices, limits. If unset, the products of "
        "the demo.",
    )
    environment: Literal["production", "development", "testing"] = Field(
        default="production", description="Which of the application's servers this is."
    )
    project: str = Field(
        default="toolgate",
        min_length=1,
        max_length=100,
        description="The id of the application's project, which `health_check` tells.",
    )
    version: str | None = Field(
        default=None,
        max_length=100,
        description="The application's version, which `health_check` tells. If unset, toolgate's.",
    )

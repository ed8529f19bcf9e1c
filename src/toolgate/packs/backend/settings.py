"""Settings of pack `backend`."""

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal
from uuid import NAMESPACE_URL, UUID

from pydantic import Field

from toolgate.setting_types import Section, Texts


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
    hooks: Path | None = Field(
        default=None,
        description="TOML file with the hooks that `run_hook` may run: functions and webhooks.",
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
    metered: Texts = Field(
        default={},
        description="Tools whose calls count as usage of a user: a table of tool and metric, such "
        'as `get_user = "requests"`. Products limit metrics.',
    )
    directory: str | None = Field(
        default=None,
        pattern=r"^firebase://[a-z0-9][a-z0-9.:-]*$",
        description="Where `sync_users` finds accounts: `firebase://PROJECT` for Firebase Auth. If "
        "unset, everyone who has signed in or holds a key here.",
    )
    directory_url: str = Field(
        default="https://identitytoolkit.googleapis.com",
        description="Address of Firebase Auth's API.",
    )

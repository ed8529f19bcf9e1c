"""Settings of pack `network`."""

from pydantic import Field

from toolgate.ports.rules import MAX_DOCUMENT_BYTES
from toolgate.setting_types import Section


class NetworkSettings(Section):
    """Pack `network`."""

    data_bytes: int = Field(
        default=MAX_DOCUMENT_BYTES,
        ge=1024,
        le=MAX_DOCUMENT_BYTES,
        description="Most bytes, as JSON, that one `firebase.write` stores.",
    )

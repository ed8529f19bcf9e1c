"""Settings of push notifications."""

from pydantic import Field

from toolgate.setting_types import Section

SCHEME = "fcm://"


class PushSettings(Section):
    """Where push notifications are sent; the service account is that of section `google`."""

    url: str = Field(
        default="outbox:",
        pattern=r"^(outbox:|fcm://[a-z0-9][a-z0-9.:-]*)$",
        examples=["fcm://PROJECT", "outbox:"],
        description="`outbox:` keeps notifications in the database, to be looked at with "
        "`operator.notification.list`; `fcm://PROJECT` sends them with Firebase Cloud Messaging.",
    )
    fcm_url: str = Field(
        default="https://fcm.googleapis.com",
        pattern=r"^https?://[^/]+/?$",
        examples=["https://HOST", "http://HOST:PORT"],
        description="With `fcm://`: URL of the server.",
    )
    seconds: float = Field(
        default=10.0, gt=0, le=120, description="With `fcm://`: time limit for one message."
    )

    @property
    def project(self) -> str | None:
        """The Firebase project; None for the outbox."""
        return self.url.removeprefix(SCHEME) if self.url.startswith(SCHEME) else None

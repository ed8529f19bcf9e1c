"""Which way notifications go, by the settings."""

from typing import TYPE_CHECKING

from toolgate.outbound.client import Outbound
from toolgate.outbound.service_accounts import (
    BadServiceAccount,
    ServiceAccount,
    account_info,
    account_text,
)
from toolgate.packs.backend.push.settings import PushSettings
from toolgate.sections import Settings
from toolgate.setting_types import BadSettings
from toolgate.storage_sections import GoogleSettings

if TYPE_CHECKING:
    from toolgate.packs.backend.push.fcm import FcmPush

NO_ACCOUNT = (
    "push.url sends with Firebase Cloud Messaging, which needs a service account. "
    "Set GOOGLE_APPLICATION_CREDENTIALS or FIREBASE_SERVICE_ACCOUNT_KEY."
)
KEPT = "Notifications are kept in the outbox, sent to nobody. push.url = fcm://PROJECT sends them."


def push_of(settings: PushSettings, google: GoogleSettings, outbound: Outbound) -> "FcmPush | None":
    """The service that sends; None for the outbox. Raises `BadSettings` without an account."""
    if settings.project is None:
        return None
    # Only who sends with it pays for it.
    from toolgate.packs.backend.push.fcm import SCOPES, FcmPush  # noqa: PLC0415

    try:
        text = account_text(google.service_account, google.credentials_file)
        account = ServiceAccount(outbound, account_info(text), SCOPES)
    except BadServiceAccount as problem:
        raise BadSettings(f"{problem} {NO_ACCOUNT}") from None
    return FcmPush(outbound, account, settings.project, settings.fcm_url, settings.seconds)


async def examine(settings: Settings, outbound: Outbound) -> str:
    """For `toolgate doctor`: where notifications go, and whether they can."""
    section = settings.section("push")
    assert isinstance(section, PushSettings)
    service = push_of(section, settings.google, outbound)
    return KEPT if service is None else await service.check()

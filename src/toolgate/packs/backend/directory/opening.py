"""Which directory, by the settings."""

from toolgate.gate.offer import Site
from toolgate.outbound.service_accounts import (
    BadServiceAccount,
    ServiceAccount,
    account_info,
    account_text,
)
from toolgate.packs.backend.directory.here import DirectoryHere
from toolgate.packs.backend.directory.port import Directory
from toolgate.packs.backend.settings import BackendSettings
from toolgate.packs.backend.sql.directory import SqlCredentialHolders
from toolgate.setting_types import BadSettings
from toolgate.storage_sections import GoogleSettings

NO_ACCOUNT = (
    "backend.directory is Firebase Auth, which needs a service account. "
    "Set GOOGLE_APPLICATION_CREDENTIALS or FIREBASE_SERVICE_ACCOUNT_KEY."
)


def directory_of(site: Site, settings: BackendSettings) -> Directory:
    """Firebase Auth where a setting says so, else this server; raises `BadSettings`."""
    if settings.directory is None:
        return DirectoryHere(site.documents, SqlCredentialHolders(site.database))
    # Only who uses it pays for it.
    from toolgate.packs.backend.directory.firebase import (  # noqa: PLC0415
        SCOPES,
        FirebaseDirectory,
    )

    google = site.section("google", GoogleSettings)
    try:
        text = account_text(google.service_account, google.credentials_file)
        account = ServiceAccount(site.outbound, account_info(text), SCOPES)
    except BadServiceAccount as problem:
        raise BadSettings(f"{problem} {NO_ACCOUNT}") from None
    project = settings.directory.removeprefix("firebase://")
    return FirebaseDirectory(site.outbound, account, project, settings.directory_url)

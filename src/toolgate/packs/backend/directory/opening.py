"""Which directory, by the settings."""

from toolgate.gate.offer import Site
from toolgate.outbound.service_accounts import BadServiceAccount, ServiceAccount, account_info
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
        account = ServiceAccount(site.outbound, account_info(_account(google)), SCOPES)
    except BadServiceAccount as problem:
        raise BadSettings(f"backend.directory: {problem} {NO_ACCOUNT}") from None
    project = settings.directory.removeprefix("firebase://")
    return FirebaseDirectory(site.outbound, account, project, settings.directory_url)


def _account(google: GoogleSettings) -> str:
    if google.service_account is not None:
        return google.service_account
    if google.credentials_file is None:
        raise BadSettings(NO_ACCOUNT)
    try:
        return google.credentials_file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadSettings(f"{google.credentials_file} cannot be read. {NO_ACCOUNT}") from None

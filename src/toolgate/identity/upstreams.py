"""Whom toolgate asks outside when a person signs in, as the settings say."""

from dataclasses import dataclass, replace

from toolgate.identity.oauth.client_documents import ClientDocuments
from toolgate.identity.providers import Provider
from toolgate.outbound.client import Outbound
from toolgate.outbound.hops import AddressPolicy
from toolgate.outbound.json_fetcher import JsonFetcher
from toolgate.sections import Settings, SignInSettings
from toolgate.setting_types import BadSettings

SECONDS = 5.0
MAX_BYTES = 256 * 1024
NEEDED = {
    "admin_key": (),
    "site": ("site_url", "firebase_project"),
    "oidc": ("oidc_issuer", "oidc_client_id"),
}


@dataclass(frozen=True, slots=True)
class Upstreams:
    """Who signs people in (None: a page of ours), and where clients describe themselves."""

    provider: Provider | None
    documents: ClientDocuments | None


def upstreams_of(
    settings: Settings, outbound: Outbound, provider: Provider | None = None
) -> Upstreams:
    """Ready to ask; nothing is asked before somebody signs in."""
    guarded = JsonFetcher(outbound=outbound, seconds=SECONDS)
    fetcher = replace(guarded, address_policy=AddressPolicy.PROXIED, most_bytes=MAX_BYTES)
    signs_in = provider or _provider(settings.sign_in, fetcher)
    described = ClientDocuments(guarded)
    return Upstreams(signs_in, described if settings.oauth.client_documents else None)


def check(sign_in: SignInSettings) -> None:
    """Raise `BadSettings` when the chosen way to sign in lacks a setting."""
    for name in NEEDED[sign_in.provider]:
        _set(sign_in, name)


def _provider(sign_in: SignInSettings, fetcher: JsonFetcher) -> Provider | None:
    """Only the provider that is configured is loaded: they bring cryptography along."""
    try:
        match sign_in.provider:
            case "admin_key":
                return None
            case "site":
                from toolgate.identity.providers.site import SiteProvider  # noqa: PLC0415

                site = _set(sign_in, "site_url")
                project = _set(sign_in, "firebase_project")
                return SiteProvider(site, project, sign_in.firebase_keys_url, fetcher=fetcher)
            case "oidc":
                from toolgate.identity.providers.oidc import OidcProvider  # noqa: PLC0415

                issuer, client = _set(sign_in, "oidc_issuer"), _set(sign_in, "oidc_client_id")
                secret = sign_in.oidc_client_secret
                return OidcProvider(issuer, client, secret, fetcher=fetcher)
    except BadSettings:
        raise
    except ValueError as problem:
        raise BadSettings(str(problem)) from problem


def _set(sign_in: SignInSettings, name: str) -> str:
    value: str | None = getattr(sign_in, name)
    if not value:
        raise BadSettings(f"Setting sign_in.provider is {sign_in.provider}: set sign_in.{name}.")
    return value

"""Why a code or a refresh token is not exchanged, for the client and for the audit."""

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row

from toolgate.gate.audit_records import timestamp
from toolgate.gate.principal import NOTHING_KNOWN, Acting
from toolgate.identity.oauth import scopes
from toolgate.identity.oauth.pkce import proves

WRONG_CODE = "The code is wrong, used or too old. Begin again at the authorization endpoint."
WRONG_TOKEN = "The refresh token is wrong, used or too old. Sign in again."  # noqa: S105
KEY_ENDED = "The key that was signed in with has ended."
ALREADY = "You have allowed this already."
OTHER_RESOURCE = "The resource is another than the one that was allowed."


@dataclass(frozen=True, slots=True)
class Refused:
    """Why no token is given: for the client, and as the audit's rule."""

    error: str
    description: str
    rule: str
    acting: Acting = NOTHING_KNOWN
    """Whose the secret is that came; known only where it was right."""

    def naming(self, grant: Row[Any]) -> "Refused":
        """The same, about a grant whose code or token it was."""
        return replace(self, acting=Acting(grant.client_id, grant.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeUse:
    """A request to exchange a code."""

    code: str
    client_id: str
    verifier: str
    redirect_uri: str | None
    resource: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshUse:
    """A request to exchange a refresh token."""

    token: str
    client_id: str
    resource: str | None
    scope: str | None


def misused(grant: Row[Any], use: CodeUse) -> Refused | None:
    """Why a code that is good may not be exchanged in this way."""
    if grant.client_id != use.client_id:
        return Refused("invalid_grant", WRONG_CODE, "oauth-code-of-another-client")
    if grant.code_expires_at <= timestamp():
        return Refused("invalid_grant", WRONG_CODE, "oauth-code-expired")
    if use.redirect_uri is not None and use.redirect_uri != grant.redirect_uri:
        told = "The redirect_uri is another than the one the code was sent to."
        return Refused("invalid_grant", told, "oauth-other-redirect")
    if not proves(use.verifier, grant.challenge):
        told = "The code_verifier does not belong to the code_challenge."
        return Refused("invalid_grant", told, "oauth-wrong-verifier")
    if use.resource is not None and use.resource != grant.resource:
        return Refused("invalid_target", OTHER_RESOURCE, "oauth-other-resource")
    return None


def not_refreshed(grant: Row[Any], use: RefreshUse) -> Refused | None:
    """Why a grant gives no new tokens for this request."""
    if grant.client_id != use.client_id:
        return Refused("invalid_grant", WRONG_TOKEN, "oauth-token-of-another-client")
    if grant.ended_at is not None:
        return Refused("invalid_grant", WRONG_TOKEN, "oauth-grant-ended")
    if use.resource is not None and use.resource != grant.resource:
        return Refused("invalid_target", OTHER_RESOURCE, "oauth-other-resource")
    if not scopes.within(use.scope or "", grant.scope):
        told = f"The scope is wider than what was allowed: {grant.scope or 'none'}."
        return Refused("invalid_scope", told, "oauth-wider-scope")
    return None

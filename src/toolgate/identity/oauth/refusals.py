"""Why a code or a refresh token is not exchanged, for the client and for the audit."""

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Row

from toolgate.gate.audit_records import timestamp
from toolgate.gate.principal import UNKNOWN_ACTOR, Actor
from toolgate.identity.oauth import scopes
from toolgate.identity.oauth.pkce import matches_challenge

WRONG_CODE = "The code is wrong, used or too old. Begin again at the authorization endpoint."
WRONG_TOKEN = "The refresh token is wrong, used or too old. Sign in again."  # noqa: S105
KEY_ENDED = "The key that was signed in with has ended."
ALREADY = "You have allowed this already."
OTHER_RESOURCE = "The resource is another than the one that was allowed."


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why no token is given: for the client, and as the audit's rule."""

    error: str
    description: str
    rule: str
    actor: Actor = UNKNOWN_ACTOR
    """Whose the secret is that came; known only where it was right."""

    def with_grant(self, grant: Row[Any]) -> "Refusal":
        """The same, about a grant whose code or token it was."""
        return replace(self, actor=Actor(grant.client_id, grant.id))


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeRequest:
    """A request to exchange a code."""

    code: str
    client_id: str
    verifier: str
    redirect_uri: str | None
    resource: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefreshRequest:
    """A request to exchange a refresh token."""

    token: str
    client_id: str
    resource: str | None
    scope: str | None


def code_refusal(grant: Row[Any], use: CodeRequest) -> Refusal | None:
    """Why a code that is good may not be exchanged in this way."""
    if grant.client_id != use.client_id:
        return Refusal("invalid_grant", WRONG_CODE, "oauth-code-of-another-client")
    if grant.code_expires_at <= timestamp():
        return Refusal("invalid_grant", WRONG_CODE, "oauth-code-expired")
    if use.redirect_uri is not None and use.redirect_uri != grant.redirect_uri:
        message = "The redirect_uri is another than the one the code was sent to."
        return Refusal("invalid_grant", message, "oauth-other-redirect")
    if not matches_challenge(use.verifier, grant.challenge):
        message = "The code_verifier does not belong to the code_challenge."
        return Refusal("invalid_grant", message, "oauth-wrong-verifier")
    if use.resource is not None and use.resource != grant.resource:
        return Refusal("invalid_target", OTHER_RESOURCE, "oauth-other-resource")
    return None


def refresh_refusal(grant: Row[Any], use: RefreshRequest) -> Refusal | None:
    """Why a grant gives no new tokens for this request."""
    if grant.client_id != use.client_id:
        return Refusal("invalid_grant", WRONG_TOKEN, "oauth-token-of-another-client")
    if grant.ended_at is not None:
        return Refusal("invalid_grant", WRONG_TOKEN, "oauth-grant-ended")
    if use.resource is not None and use.resource != grant.resource:
        return Refusal("invalid_target", OTHER_RESOURCE, "oauth-other-resource")
    if not scopes.is_within(use.scope or "", grant.scope):
        message = f"The scope is wider than what was allowed: {grant.scope or 'none'}."
        return Refusal("invalid_scope", message, "oauth-wider-scope")
    return None

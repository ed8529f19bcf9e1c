"""An admin key as the client id, for clients that can be told a client id and nothing else.

The key then stands in the address that a browser opens, so this works on loopback only, unless
the setting oauth.admin_key_client says otherwise. It is compared as a hash, and neither stored
nor written to the audit or the log: a grant names the key by its id.
"""

from urllib.parse import urlsplit

from toolgate.gate.principal import Kind, Principal
from toolgate.identity.guesses import Guesses, Unusable
from toolgate.identity.keys import Keys
from toolgate.identity.oauth.clients import is_document
from toolgate.identity.oauth.messages import Request
from toolgate.identity.oauth.redirects import LOOPBACK

REGISTERED = "mcp_"


class AdminClients:
    """Finds out whose key a client id is."""

    def __init__(self, keys: Keys, guesses: Guesses, *, everywhere: bool) -> None:
        self._keys = keys
        self._guesses = guesses
        self.everywhere = everywhere

    async def holder(self, request: Request, client_id: str | None) -> Principal | None:
        """The admin whose key this is; None for every other client id, and where it may be none.

        Raises `RateLimited` for a peer that has tried too many.
        """
        if not client_id or client_id.startswith(REGISTERED) or is_document(client_id):
            return None
        if not self._keys.may_be_key(client_id):
            return None
        if not self.everywhere and not _on_loopback(request):
            return None
        try:
            return await self._guesses.look_up(client_id, request.peer, self._admin)
        except Unusable:
            return None

    async def _admin(self, key: str) -> Principal | None:
        principal = await self._keys.look_up(key)
        return principal if principal and principal.kind is Kind.ADMIN_KEY else None

    async def stored_client_id(self, request: Request, client_id: str | None) -> str | None:
        """The client id under which grants are kept."""
        principal = await self.holder(request, client_id)
        return principal.id if principal else client_id


def _on_loopback(request: Request) -> bool:
    """Whether the request was sent to a loopback name, by this machine."""
    return request.local and urlsplit(request.base).hostname in LOOPBACK

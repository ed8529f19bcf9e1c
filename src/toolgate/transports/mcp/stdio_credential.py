"""Who the client on standard input and output is, asked again with every request.

Over HTTP each request brings its credential. Here it was given once, when the process began, and
may have been revoked or have expired since.
"""

import logging
from collections.abc import Awaitable, Callable

from sqlalchemy.exc import SQLAlchemyError

from toolgate.gate.audited_names import audited_name
from toolgate.gate.calls import Call
from toolgate.gate.errors import GateError, Unauthenticated, Unavailable
from toolgate.gate.ids import Ids
from toolgate.gate.pipeline import Gate
from toolgate.gate.principal import ANONYMOUS, Principal
from toolgate.ports.documents import StoreUnavailable
from toolgate.throttled_log import ThrottledLog
from toolgate.transports.jsonrpc import Id, failure_line
from toolgate.transports.refusals import CREDENTIALS_REQUIRED
from toolgate.transports.stream_credentials import FRESH_SECONDS

logger = logging.getLogger(__name__)

TRANSPORT = "stdio"
ENDED = (
    "The key that this process was started with has expired or was revoked. "
    "`toolgate keys create` makes one; start it again with that."
)

Identify = Callable[[float | None], Awaitable[Principal | None]]
"""Says who holds the credential; nobody any more when it has ended. The number is how many seconds
ago that may have been looked up, if less than the second for which everybody remembers it."""


class CredentialHolder:
    """The one caller of this process."""

    def __init__(self, gate: Gate, ids: Ids, principal: Principal, identify: Identify | None):
        self.principal = principal
        """Who it was when it was asked last."""
        self._gate = gate
        self._ids = ids
        self._identify = identify
        self._silent = ThrottledLog(logger)

    async def good_now(self) -> bool:
        """Whether the credential is good, for who asks again and again."""
        return await self.good(FRESH_SECONDS)

    async def good(self, oldest: float | None = None) -> bool:
        """Whether the credential is good; without one, nothing can end."""
        if self._identify is None:
            return True
        found = await self._identify(oldest)
        if found is not None:
            self.principal = found
        return found is not None

    async def refusal(self, method: str, id: Id | None, tool: str = "") -> bytes | None:
        """The answer to a request that may not be made any more, audited; None for a good one."""
        problem: GateError
        try:
            if await self.good():
                return None
            problem = Unauthenticated(ENDED)
        except (SQLAlchemyError, StoreUnavailable):
            self._silent.record("the key cannot be looked up", exc_info=True)
            problem = Unavailable("Keys cannot be checked now. Try again.")
        what = audited_name(tool) if tool else method
        call = Call(tool=what, principal=ANONYMOUS, request_id=self._ids.new(), transport=TRANSPORT)
        error = self._gate.refuse(call, problem, CREDENTIALS_REQUIRED)
        return failure_line(id, error.rpc, error.message)

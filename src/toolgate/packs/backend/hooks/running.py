"""Running a hook: its result, or an error that says nothing of what is behind it."""

import hashlib
import hmac
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio
import orjson

from toolgate.gate.errors import GateError, ResultTooLarge, RouteFailed, TimedOut, Unavailable
from toolgate.outbound.client import Outbound
from toolgate.outbound.responses import (
    AddressRefused,
    FetchFailed,
    FetchTimedOut,
    ResponseLimits,
    ResponseTooLarge,
)
from toolgate.packs.backend.hooks.registry import Hook, HookContext, Hooks

logger = logging.getLogger(__name__)

MAX_BYTES = 1024 * 1024
ID, TIMESTAMP, SIGNATURE = "X-Toolgate-Id", "X-Toolgate-Timestamp", "X-Toolgate-Signature"
KEY, ATTEMPT = "Idempotency-Key", "X-Toolgate-Attempt"
GOOD, REFUSED, FAILED = 200, 300, 500
LATER = frozenset({408, 425, 429})
"""Refusals that another time might not come."""


class HookMissing(LookupError):
    """No hook has this name."""


@dataclass(frozen=True, slots=True)
class HookRunner:
    """Runs hooks by their names."""

    hooks: Hooks
    outbound: Outbound
    clock: Callable[[], float] = time.time

    def find(self, name: str) -> Hook:
        """The hook of this name; raises `HookMissing`."""
        hook = self.hooks.by_name.get(name)
        if hook is None:
            raise HookMissing(name)
        return hook

    async def run(self, name: str, ctx: HookContext) -> Any:
        """What a function answers: any JSON, or None."""
        hook = self.find(name)
        try:
            with anyio.fail_after(hook.seconds):
                return await self.hooks.functions[name](ctx)
        except TimeoutError:
            message = f"The hook {name} took longer than {hook.seconds:g} s and was stopped."
            raise TimedOut(message) from None
        except GateError:
            raise
        except Exception as error:
            raise RouteFailed(f"The hook {name} failed. The server's log says why.") from error

    async def send(self, name: str, id: str, attempt: int) -> Any:
        """Call a URL once; what it answers: any JSON, or None.

        Raises `RouteFailed` where it refuses for good, another `GateError` where it may take it
        later. Only the receiver knows what it has done: the id is the same every time.
        """
        hook = self.find(name)
        assert hook.url is not None
        assert hook.secret is not None
        second = int(self.clock())
        body = orjson.dumps({"id": id, "hook": name, "timestamp": second})
        headers = {
            "Content-Type": "application/json",
            ID: id,
            KEY: id,
            ATTEMPT: str(attempt),
            TIMESTAMP: str(second),
            SIGNATURE: f"sha256={signature(hook.secret, second, body)}",
        }
        limits = ResponseLimits(seconds=hook.seconds, most_bytes=MAX_BYTES, statuses=None)
        try:
            answer = await self.outbound.fetch(
                hook.url, limits, method="POST", headers=headers, content=body
            )
        except FetchFailed as problem:
            logger.warning("hook %s, attempt %d of %s: %s", name, attempt, id, problem)
            raise _error(name, problem) from problem
        status = answer.status
        if GOOD <= status < REFUSED:
            return _json(answer.body)
        message = f"The hook {name} answered with status {status}."
        raise Unavailable(message) if status >= FAILED or status in LATER else RouteFailed(message)


def _error(name: str, failed: FetchFailed) -> GateError:
    """What to tell; whether it is tried again, only who waits for the run knows."""
    match failed:
        case AddressRefused():
            step = "List its HOST:PORT in the setting outbound.allow."
            return RouteFailed(f"The hook {name} may not be called. {failed} {step}")
        case FetchTimedOut():
            return TimedOut(f"The hook {name} did not answer within {failed.seconds:g} s.")
        case ResponseTooLarge():
            most = f"more than {failed.most_bytes} bytes"
            return ResultTooLarge(f"The hook {name} answered {most}. Let it answer less.")
        case _:
            return Unavailable(f"The hook {name} cannot be reached, or its answer is of no use.")


def signature(secret: str, second: int, body: bytes) -> str:
    """What proves that a body, and its time, come from who knows the secret."""
    signed = str(second).encode() + b"." + body
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None

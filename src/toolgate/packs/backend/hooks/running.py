"""Running a hook: its result, or an error that says nothing of what is behind it."""

import hashlib
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio
import orjson

from toolgate.gate.errors import GateError, RouteFailed, TimedOut
from toolgate.gate.fetch_errors import error_of_fetch
from toolgate.outbound.client import Outbound
from toolgate.outbound.responses import FetchFailed, ResponseLimits
from toolgate.packs.backend.hooks.registry import Hook, HookContext, Hooks

MAX_BYTES = 1024 * 1024
ID, TIMESTAMP, SIGNATURE = "X-Toolgate-Id", "X-Toolgate-Timestamp", "X-Toolgate-Signature"
GOOD, REFUSED = 200, 300


class HookMissing(LookupError):
    """No hook has this name."""


@dataclass(frozen=True, slots=True)
class HookRunner:
    """Runs hooks by their names."""

    hooks: Hooks
    outbound: Outbound
    clock: Callable[[], float] = time.time

    async def run(self, name: str, ctx: HookContext) -> Any:
        """What a hook answers: any JSON, or None."""
        hook = self.hooks.by_name.get(name)
        if hook is None:
            raise HookMissing(name)
        if hook.url is not None:
            return await self._call_url(name, hook, ctx)
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

    async def _call_url(self, name: str, hook: Hook, ctx: HookContext) -> Any:
        """Once, never again: only the receiver can tell whether it was done."""
        assert hook.url is not None
        assert hook.secret is not None
        second = int(self.clock())
        body = orjson.dumps({"id": ctx.call, "hook": name, "timestamp": second})
        headers = {
            "Content-Type": "application/json",
            ID: ctx.call,
            TIMESTAMP: str(second),
            SIGNATURE: f"sha256={signature(hook.secret, second, body)}",
        }
        limits = ResponseLimits(seconds=hook.seconds, most_bytes=MAX_BYTES, statuses=None)
        try:
            answer = await self.outbound.fetch(
                hook.url, limits, method="POST", headers=headers, content=body
            )
        except FetchFailed as problem:
            raise error_of_fetch(problem, f"The hook {name}") from problem
        if not GOOD <= answer.status < REFUSED:
            raise RouteFailed(f"The hook {name} answered with status {answer.status}.")
        return _json(answer.body)


def signature(secret: str, second: int, body: bytes) -> str:
    """What proves that a body, and its time, come from who knows the secret."""
    signed = str(second).encode() + b"." + body
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def _json(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None

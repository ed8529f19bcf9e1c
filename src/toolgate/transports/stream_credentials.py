"""Event streams end with their credential: what stays open is asked about again and again.

A call is checked when it comes. A stream comes once and stays, so somebody has to look whether its
credential was revoked or has expired meanwhile, by whichever process.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from sqlalchemy.exc import SQLAlchemyError

from toolgate.gate.errors import Unauthenticated
from toolgate.identity.credentials import Credentials, InsufficientScope
from toolgate.ports.documents import StoreUnavailable
from toolgate.transports.address import ADDRESS, Address
from toolgate.transports.asgi import Message, Scope, Send, credential_of

EVERY_SECONDS = 0.5
FRESH_SECONDS = 0.4
"""How old an answer of the database may be; with the pause before it, less than a second."""
ENDED = "This key or token has expired or was revoked. `toolgate keys create` makes a key."

Good = Callable[[], Awaitable[bool]]
pause = anyio.sleep


async def run_while_valid(good: Good | None, work: Callable[[], Awaitable[Any]]) -> Any:
    """Do the work; raise `Unauthenticated` once its credential is not good any more."""
    if good is None:
        return await work()
    done: list[Any] = []
    failed: Exception | None = None
    async with anyio.create_task_group() as tasks:

        async def watch() -> None:
            while await _is_good(good):
                await pause(EVERY_SECONDS)
            tasks.cancel_scope.cancel()

        tasks.start_soon(watch)
        try:
            done.append(await work())
        except Exception as error:  # the group would wrap it in another
            failed = error
        tasks.cancel_scope.cancel()
    if failed is not None:
        raise failed
    if not done:
        raise Unauthenticated(ENDED)
    return done[0]


async def _is_good(good: Good) -> bool:
    try:
        return await good()
    except (
        InsufficientScope,
        SQLAlchemyError,
        StoreUnavailable,
    ):  # what cannot be checked does not go on
        return False


def validity_check(credentials: Credentials, scope: Scope) -> Good:
    """Whether the credential of a request is good now."""
    credential = credential_of(scope) or ""
    address: Address = scope[ADDRESS]

    async def good() -> bool:
        known = await credentials.identify(credential, address.resources, FRESH_SECONDS)
        return known is not None

    return good


async def stream_while_valid(
    good: Good, app: Callable[[Send], Awaitable[None]], send: Send
) -> None:
    """Serve a stream, and close it when its credential ends."""
    begun = ended = False

    async def noted(message: Message) -> None:
        nonlocal begun, ended
        begun = True
        ended = message["type"] == "http.response.body" and not message.get("more_body", False)
        await send(message)

    try:
        await run_while_valid(good, lambda: app(noted))
    except Unauthenticated:
        if begun and not ended:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

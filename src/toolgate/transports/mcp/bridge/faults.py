"""What went wrong between the bridge and the server, in one sentence and a next step."""

import ssl
from pathlib import Path
from typing import Any

import httpx2
import orjson

from toolgate.transports.mcp.bridge.messages import inner

NO_CREDENTIALS = "Give a key with --key, or in TOOLGATE_KEY; `toolgate keys create` makes one."
OTHER_CREDENTIALS = (
    "Give another with --key or --token, or in TOOLGATE_KEY; `toolgate keys create` makes one."
)


class Fault(Exception):
    """A request that ends here, with the sentence for whoever asked."""


class NotReached(Fault):
    """The request did not reach the server, so it can be sent again."""


class SessionLost(Exception):
    """The server does not know the session any more; the request was not carried out."""

    def __init__(self, session: str) -> None:
        super().__init__(session)
        self.session = session


def unreachable(error: Exception, url: str, ca: Path | None) -> Fault:
    """No connection could be made; a certificate that is not trusted stays so."""
    problem = _of_tls(error)
    if problem is None:
        why = str(error).rstrip(".") or type(error).__name__
        return NotReached(f"Cannot reach {url}: {why}. Check that the server runs there.")
    if "WRONG_VERSION_NUMBER" in str(problem) or "wrong version" in str(problem).lower():
        plain = url.replace("https:", "http:", 1)
        return Fault(f"{url} does not speak HTTPS. Try --url {plain}.")
    why = getattr(problem, "verify_message", "") or problem.reason or str(problem)
    return Fault(f"The certificate of {url} is not trusted: {why}. {_trust(ca)}")


def _trust(ca: Path | None) -> str:
    if ca is not None:
        return f"It was not issued by the CA in {ca}; name the right file with --ca."
    return (
        "Name its CA with --ca FILE; `toolgate serve --https` keeps its own in tls/ca.pem "
        "of its data folder."
    )


def _of_tls(error: BaseException | None) -> ssl.SSLError | None:
    while error is not None and not isinstance(error, ssl.SSLError):
        error = error.__cause__ or error.__context__
    return error


def connection_lost(url: str, method: str | None, error: Exception | None = None) -> Fault:
    """The connection ended before the answer was complete."""
    if method == "tools/call":
        return Fault(
            f"The connection to {url} broke during the call, which may have been carried out. "
            "It was not repeated."
        )
    if method == "subscriptions/listen":
        return Fault(f"The connection to {url} broke, and the subscription with it. Listen again.")
    hint = " If it serves HTTPS, write https://." if url.startswith("http:") and error else ""
    return Fault(f"The connection to {url} broke before the answer was there. Try again.{hint}")


def refusal(answer: httpx2.Response, body: bytes, url: str, known: bool) -> Fault:
    """The server answered, but not with a JSON-RPC message."""
    status = answer.status_code
    message = _error_message(body)
    if status == 401:
        if not known:
            return Fault(f"{url} wants credentials (401). {NO_CREDENTIALS}")
        return Fault(f"{url} does not take this key or token (401). {OTHER_CREDENTIALS}")
    if status in (404, 405):
        return Fault(
            f"There is no MCP endpoint at {url} ({status}). toolgate's is at /mcp; check --url."
        )
    if answer.is_redirect:
        where = answer.headers.get("location", "elsewhere")
        return Fault(f"{url} leads to {where}, which is not followed. Give that as --url.")
    why = f": {message.rstrip('.')}" if message else ""
    return Fault(f"{url} answered {status}{why}.")


def _error_message(body: bytes) -> str:
    """The sentence in an error's body, if it has one that can be shown."""
    try:
        found: Any = inner(orjson.loads(body), "error")
    except orjson.JSONDecodeError:
        return ""
    message = inner(found, "message") or found
    if not isinstance(message, str):
        return ""
    return "".join(one for one in message if one.isprintable())[:500]

"""Connections, and which of them are used again: only those on which nothing is left.

A server that sends more than one whole response (a body longer than its Content-Length, an answer
too many) leaves bytes behind. The pool's own check sees those in the socket, not those already
read from it: they would be taken for the answer to the next call, which may be another caller's.
"""

import ssl
from typing import Any
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

KEPT, KEPT_SECONDS, MOST, MAX_SINGLE = 20, 5.0, 100, 32


class CleanConnection(httpcore2.AsyncHTTPConnection):
    """Counts as expired once bytes are left over."""

    def has_expired(self) -> bool:
        """Whether it must not be used again."""
        return super().has_expired() or (self.is_idle() and self._has_unread_bytes())

    def _has_unread_bytes(self) -> bool:
        # No public name leads to the parser and the stream; a test shows that these still do.
        inner: Any = self._connection
        parsed_ahead, _ = inner._h11_state.trailing_data
        return bool(parsed_ahead) or _tls_has_unread_bytes(
            inner._network_stream.get_extra_info("ssl_object")
        )


def _tls_has_unread_bytes(tls: ssl.SSLObject | None) -> bool:
    """Whether TLS holds bytes that were received and not read, or was closed."""
    try:
        if tls is not None:
            tls.read(1)
    except ssl.SSLWantReadError:
        return False
    except ssl.SSLError:
        return True
    return tls is not None


class CleanPool(httpcore2.AsyncConnectionPool):
    """A pool of such connections."""

    def create_connection(self, origin: httpcore2.Origin) -> CleanConnection:
        """A new connection."""
        return CleanConnection(origin, self._ssl_context, KEPT_SECONDS)


class CleanTransport(httpx2.AsyncHTTPTransport):
    """The HTTP client's transport, on a pool of such connections."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(verify=context, trust_env=False)
        self._pool = CleanPool(context, None, MOST, KEPT, KEPT_SECONDS)


def single_use(context: ssl.SSLContext, proxy: str | None = None) -> httpx2.AsyncHTTPTransport:
    """A transport that uses no connection twice: two names can have one address."""
    limits = httpx2.Limits(max_connections=MAX_SINGLE, max_keepalive_connections=0)
    return httpx2.AsyncHTTPTransport(verify=context, trust_env=False, proxy=proxy, limits=limits)


class UnclosableTransport(httpx2.AsyncBaseTransport):
    """A transport for a client that must not close it."""

    def __init__(self, transport: httpx2.AsyncBaseTransport) -> None:
        self.handle_async_request = transport.handle_async_request


def proxy_for(url: httpx2.URL) -> str | None:
    """The proxy that the machine's environment names for an address."""
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(url.host) or proxy_bypass(url.netloc.decode("ascii")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"

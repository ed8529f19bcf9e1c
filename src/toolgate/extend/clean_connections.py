"""Connections to backends that are used again only while nothing is left on them.

A backend that sends more than one whole response (a body longer than its Content-Length, an answer
too many) leaves bytes behind. The pool's own check sees those in the socket, not those already
read from it: they would be taken for the answer to the next call, which may be another caller's.
"""

import ssl
from typing import Any

import httpcore2
import httpx2

KEPT, KEPT_SECONDS, MOST = 20, 5.0, 100


class CleanConnection(httpcore2.AsyncHTTPConnection):
    """Counts as expired once bytes are left over."""

    def has_expired(self) -> bool:
        """Whether it must not be used again."""
        return super().has_expired() or (self.is_idle() and self._left_over())

    def _left_over(self) -> bool:
        # No public name leads to the parser and the stream; a test shows that these still do.
        inner: Any = self._connection
        parsed_ahead, _ = inner._h11_state.trailing_data
        return bool(parsed_ahead) or _tls_left_over(
            inner._network_stream.get_extra_info("ssl_object")
        )


def _tls_left_over(tls: ssl.SSLObject | None) -> bool:
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

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context
        super().__init__(
            ssl_context=context,
            max_connections=MOST,
            max_keepalive_connections=KEPT,
            keepalive_expiry=KEPT_SECONDS,
        )

    def create_connection(self, origin: httpcore2.Origin) -> CleanConnection:
        """A new connection."""
        return CleanConnection(origin, self._context, KEPT_SECONDS)


class CleanTransport(httpx2.AsyncHTTPTransport):
    """The HTTP client's transport, on a pool of such connections."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__(verify=context, trust_env=False)
        self._pool = CleanPool(context)


def clean_transport(context: ssl.SSLContext | None = None) -> httpx2.AsyncHTTPTransport:
    """A transport; unless a context is given, with the machine's certificate authorities."""
    return CleanTransport(context or httpx2.create_ssl_context(trust_env=False))

"""The certificates that clients trust by default: read once in a process, not for each client.

Reading them takes about 25 ms, and the tests make thousands of clients.
"""

import functools
import os
import ssl

import httpcore2

VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""Where they are read from instead, if the environment says so."""


def read_trust_once() -> None:
    """Let clients that trust the same certificates share them."""
    read = httpcore2.default_ssl_context

    @functools.cache
    def shared(trust_env: bool, _where: tuple[str | None, ...]) -> ssl.SSLContext:
        return read(_trust_env=trust_env)

    def default_ssl_context(*, _trust_env: bool = True) -> ssl.SSLContext:
        return shared(_trust_env, tuple(os.environ.get(name) for name in VARIABLES))

    httpcore2.default_ssl_context = default_ssl_context

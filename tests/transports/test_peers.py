"""Where a request comes from: a proxy's word counts only if the proxy is trusted."""

from typing import Any

import pytest

from toolgate.sections import Server
from toolgate.transports.peers import Peers

TRUSTING = Server(trusted_proxies=("10.0.0.0/24", "::1"))


def peer(server: Server, client: str | None, **headers: str) -> str:
    sent = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    scope: dict[str, Any] = {"headers": sent, "client": (client, 1234) if client else None}
    return Peers(server)(scope)


@pytest.mark.parametrize(
    ("client", "place"),
    [
        ("203.0.113.9", "203.0.113.9"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::1", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("::1", "::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("/run/socket", "unknown"),
        (None, "unknown"),
    ],
)
def test_without_a_proxy_the_connection_counts(client: str | None, place: str) -> None:
    assert peer(Server(), client, x_forwarded_for="9.9.9.9", forwarded="for=9.9.9.9") == place


@pytest.mark.parametrize(
    ("headers", "place"),
    [
        ({"x_forwarded_for": "203.0.113.9"}, "203.0.113.9"),
        ({"x_forwarded_for": "9.9.9.9, 203.0.113.9"}, "203.0.113.9"),
        ({"x_forwarded_for": "9.9.9.9, 203.0.113.9, 10.0.0.8"}, "203.0.113.9"),
        ({"x_forwarded_for": "203.0.113.9:4711"}, "203.0.113.9"),
        ({"x_forwarded_for": "[2001:db8::1]:4711"}, "2001:db8::/64"),
        ({"forwarded": "for=9.9.9.9, for=203.0.113.9;proto=https"}, "203.0.113.9"),
        ({"forwarded": 'for="[2001:db8::1]:4711"'}, "2001:db8::/64"),
        ({"forwarded": "for=203.0.113.9", "x_forwarded_for": "203.0.113.9"}, "203.0.113.9"),
        # What is not said, not readable or contradictory counts for the proxy.
        ({}, "10.0.0.7"),
        ({"x_forwarded_for": "unknown"}, "10.0.0.7"),
        ({"x_forwarded_for": "203.0.113.9, nonsense"}, "10.0.0.7"),
        ({"x_forwarded_for": ""}, "10.0.0.7"),
        ({"forwarded": "for=_hidden"}, "10.0.0.7"),
        ({"forwarded": 'for="203.0.113.9'}, "10.0.0.7"),
        ({"forwarded": "for=9.9.9.9", "x_forwarded_for": "203.0.113.9"}, "10.0.0.7"),
        ({"x_forwarded_for": "10.0.0.8"}, "10.0.0.7"),
    ],
)
def test_behind_a_trusted_proxy_its_word_counts(headers: dict[str, str], place: str) -> None:
    assert peer(TRUSTING, "10.0.0.7", **headers) == place
    assert peer(TRUSTING, "10.0.1.7", **headers) == "10.0.1.7", "this one is not trusted"

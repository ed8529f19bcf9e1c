"""Where a request comes from: a proxy's word counts only if the proxy is trusted."""

from typing import Any

import pytest

from toolgate.sections import ServerSettings
from toolgate.transports import peers
from toolgate.transports.peers import Peers

TRUSTING = ServerSettings(trusted_proxies=("10.0.0.0/24", "::1"))
UNCLEAR = "unknown via 10.0.0.7"


def peer(server: ServerSettings, client: str | None, **headers: str) -> str:
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
    assert (
        peer(ServerSettings(), client, x_forwarded_for="9.9.9.9", forwarded="for=9.9.9.9") == place
    )


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
        # Where nothing is said it is the proxy itself.
        ({}, "10.0.0.7"),
        ({"x_forwarded_for": ""}, "10.0.0.7"),
        ({"x_forwarded_for": "10.0.0.8"}, "10.0.0.7"),
        # What is not readable or contradictory counts for nobody else.
        ({"x_forwarded_for": "unknown"}, UNCLEAR),
        ({"x_forwarded_for": "203.0.113.9, nonsense"}, UNCLEAR),
        ({"x_forwarded_for": "203.0.113.9," + 65 * "0"}, UNCLEAR),
        ({"forwarded": "for=_hidden"}, UNCLEAR),
        ({"forwarded": 'for="203.0.113.9'}, UNCLEAR),
        ({"forwarded": "for=9.9.9.9", "x_forwarded_for": "203.0.113.9"}, UNCLEAR),
        ({"forwarded": "for=9.9.9.9", "x_forwarded_for": "10.0.0.8"}, UNCLEAR),
    ],
)
def test_behind_a_trusted_proxy_its_word_counts(headers: dict[str, str], place: str) -> None:
    assert peer(TRUSTING, "10.0.0.7", **headers) == place
    assert peer(TRUSTING, "10.0.1.7", **headers) == "10.0.1.7", "this one is not trusted"


@pytest.mark.parametrize(
    ("name", "one"), [("x_forwarded_for", "1,"), ("forwarded", "for=1,"), ("x_forwarded_for", ",")]
)
def test_of_a_long_header_only_the_end_is_read(
    name: str, one: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0
    ip_address = peers.ip_address

    def counted(text: str) -> Any:
        nonlocal read
        read += 1
        return ip_address(text)

    monkeypatch.setattr(peers, "ip_address", counted)
    last = "203.0.113.9, 10.0.0.8" if name == "x_forwarded_for" else "for=203.0.113.9"
    assert peer(TRUSTING, "10.0.0.7", **{name: 30_000 * one + last}) == "203.0.113.9"
    assert read <= 3
    trusted = ", ".join(10_000 * ["10.0.0.8"])
    assert peer(TRUSTING, "10.0.0.7", x_forwarded_for=trusted) == "10.0.0.7"
    assert read < 25

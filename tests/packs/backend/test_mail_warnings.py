"""`toolgate doctor` warns of mail that leaves with names and links that are nobody's."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.smtp_server import smtp_server

from toolgate.cli.main import run

DOMAIN, NAME, LINK = "set mail.domain.", "set brand.name.", "set server.public_url."


class _Scopes(BaseHTTPRequestHandler):
    """SendGrid's answer on what a key may do."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"scopes": ["mail.send"]}')

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@pytest.fixture
def sendgrid_url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Scopes) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Doctor:
    """Runs it with settings from the environment."""

    def __init__(self, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.capsys, self.patch = capsys, patch

    def mail(self, **settings: str) -> tuple[str, str]:
        for name, value in settings.items():
            self.patch.setenv(f"TOOLGATE_{name.upper()}", value)
        self.capsys.readouterr()
        run(["doctor", "--json"])
        report = json.loads(self.capsys.readouterr().out)
        [found] = [one for one in report if one["check"] == "mail"]
        return found["state"], found["says"]


@pytest.fixture
def doctor(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Doctor:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOLGATE_PACKS__ENABLED", "backend")
    return Doctor(capsys, monkeypatch)


def test_mail_that_waits_in_the_outbox_needs_no_names(doctor: Doctor) -> None:
    assert doctor.mail()[0] == "ok"


def test_names_that_are_not_set_are_warned_of(doctor: Doctor) -> None:
    with smtp_server() as inbox:
        state, says = doctor.mail(mail__url=inbox.url)
        assert (state, DOMAIN in says, NAME in says) == ("warn", True, True)
        assert "toolgate.invalid" in says
        assert LINK not in says  # the mail stays on this machine, as the link does
        state, says = doctor.mail(brand__name="Acme", brand__contact="hello@acme.example")
        assert (state, "set " in says) == ("ok", False)


def test_a_link_that_opens_here_only_is_warned_of(doctor: Doctor, sendgrid_url: str) -> None:
    given = {"brand__name": "Acme", "mail__domain": "acme.example"}
    given |= {"mail__url": "sendgrid:", "mail__sendgrid_url": sendgrid_url}
    state, says = doctor.mail(**given, mail__sendgrid_key="SG.secret")
    assert (state, LINK in says, DOMAIN in says) == ("warn", True, False)
    assert doctor.mail(server__host="0.0.0.0")[0] == "warn"
    assert doctor.mail(server__public_url="https://tools.acme.example")[0] == "ok"

"""Links that are handed out name the address that was really bound, or the public one."""

from typing import Any

import httpx2
import pytest
from tests.servers import Server, running_server
from tests.smtp_server import smtp_server

UID = "_test-premium-active"
BACKEND: dict[str, Any] = {"packs__enabled": ["backend"]}


def portal_of(server: Server, **arguments: str) -> str:
    with server.client() as admin:
        body = {"uid": UID, **arguments}
        answer = admin.post("/backend-manager/payments/portal", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["url"]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_port_that_the_system_chose(
    tmp_path_factory: pytest.TempPathFactory, workers: int
) -> None:
    with running_server(tmp_path_factory, server__workers=workers, **BACKEND) as server:
        url = portal_of(server)
        assert url.startswith(f"{server.url}/backend-manager/payments/portal/")
        page = httpx2.get(url, trust_env=False)
        assert page.status_code == 200, "the link works as it is"
        assert f'href="{server.url}"' in page.text, "where it leads back to"
        assert portal_of(server, returnUrl=f"{server.url}/x"), "an address of the server itself"


def test_the_public_address(tmp_path_factory: pytest.TempPathFactory) -> None:
    public = "https://tools.example.com"
    with running_server(tmp_path_factory, server__public_url=public, **BACKEND) as server:
        assert portal_of(server).startswith(f"{public}/backend-manager/payments/portal/")


def test_the_link_that_ends_mails(tmp_path_factory: pytest.TempPathFactory) -> None:
    mail = {"to": ["a@x.example"], "subject": "x", "sender": "newsletter", "copy": False}
    with (
        smtp_server() as inbox,
        running_server(tmp_path_factory, mail__url=inbox.url, **BACKEND) as server,
    ):
        with server.client() as admin:
            sent = admin.post("/v1/tools/send_email", json=mail)
            assert sent.status_code == 200, sent.text
        link = str(inbox.mails[0].message["list-unsubscribe"]).strip("<>")
        assert link.startswith(f"{server.url}/backend-manager/unsubscribe?token=")
        assert httpx2.get(link, trust_env=False).status_code == 200, "the link works as it is"

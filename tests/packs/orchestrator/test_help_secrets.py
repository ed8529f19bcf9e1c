"""No page of the help shows a secret that the server was given."""

import secrets
from pathlib import Path

import pytest
from tests.packs.orchestrator.calls import BUILD, result

from toolgate.packs.orchestrator.help.pages import readable
from toolgate.testing import opened_kit
from toolgate.testing.kit import ADMIN

pytestmark = pytest.mark.anyio


async def test_no_page_shows_a_secret_of_the_settings(tmp_path: Path) -> None:
    planted = [secrets.token_hex(16) for _ in range(3)]
    settings = {
        "admin_key": planted[0],
        "blobs__session_token": planted[1],
        "blobs__secret_access_key": planted[2],
    }
    async with opened_kit(
        tmp_path, demo_data=True, packs__enabled=["orchestrator"], **settings
    ) as kit:
        tools = kit.app.gate.visible(ADMIN)
        topics = [*readable(tools), *(tool.name for tool in tools)]
        pages = [await result(kit, "help.get", task_id=BUILD, topic=one) for one in topics]
        shown = "".join(page["content"] for page in pages)
    assert len(pages) > 30
    assert not [one for one in planted if one in shown]

"""The application in this process, with the OAuth server at a known address."""

from collections.abc import AsyncIterator

import pytest
from tests.identity.oauth.flow import Flow, registered
from tests.transports.conftest import Web, opened_web

BASE = "http://127.0.0.1"


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    """One application for the tests of a module."""
    folder = tmp_path_factory.mktemp("web")
    async with opened_web(folder, limits__sign_ins_per_minute=10_000) as opened:
        yield opened


@pytest.fixture
async def flow(web: Web) -> AsyncIterator[Flow]:
    """A registered client, and a browser without cookies."""
    async with web.client(None) as http:
        yield await registered(http)

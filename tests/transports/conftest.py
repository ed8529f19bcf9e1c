"""The whole web application in this process, for tests that need settings or tools of their own."""

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from toolgate.gate.offer import AnyOffer
from toolgate.gate.principal import AgentType, Role
from toolgate.identity import credentials
from toolgate.testing import Kit, opened_kit
from toolgate.transports.asgi import ASGIApp
from toolgate.transports.connection import heads
from toolgate.transports.web import web_app

ADMIN_KEY = secrets.token_hex(16)


@dataclass(frozen=True, slots=True)
class Web:
    """An open application, and clients for it."""

    kit: Kit
    app: ASGIApp
    keys: dict[str, str]

    def client(
        self, holder: str | None = "admin", host: str = "127.0.0.1", **headers: str
    ) -> httpx2.AsyncClient:
        """A client with a holder's key; None for no credentials."""
        if holder is not None:
            headers = {"Authorization": f"Bearer {self.keys[holder]}", **headers}
        transport = httpx2.ASGITransport(self.app)
        return httpx2.AsyncClient(transport=transport, base_url=f"http://{host}", headers=headers)

    async def audit_rows(self, request_id: str) -> list[dict[str, Any]]:
        """The audit rows of one request."""
        rows = await self.kit.audit_rows()
        return [row for row in rows if row["request_id"] == request_id]


@asynccontextmanager
async def opened_web(
    folder: Path, plugins: Sequence[AnyOffer] = (), **settings: Any
) -> AsyncGenerator[Web, None]:
    """The application with demo data and writes on; settings as `limits__seconds=1`."""
    settings = {"writes": True, "demo_data": True, "admin_key": ADMIN_KEY, **settings}
    async with opened_kit(folder, plugins=plugins, **settings) as kit:
        made = await kit.app.keys.create(role=Role.USER, user_id="abc123")
        keys = {"admin": ADMIN_KEY, "user": made.key}
        for agent_type in AgentType:
            keys[agent_type.value] = (await kit.app.keys.create(agent_type=agent_type)).key
        app = kit.app
        async with web_app(
            app.gate, app.credentials, app.settings, app.readiness(), app.outbound
        ) as web:
            yield Web(kit, web, keys)


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    """One application for the tests of a module."""
    async with opened_web(tmp_path_factory.mktemp("web")) as opened:
        yield opened


@pytest.fixture(scope="module")
def remembered() -> Iterator[None]:
    """What is known of callers stays known while a test looks at it."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (credentials, heads):
            patch.setattr(module, "REMEMBERED_SECONDS", 3600.0)
        yield

"""A backend, and files of tools for it."""

from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.extend.upstream import Upstream, running_upstream

from toolgate.testing import Kit, opened_kit

Opened = Callable[..., AbstractAsyncContextManager[Kit]]


@pytest.fixture(scope="session")
def backend() -> Iterator[Upstream]:
    with running_upstream() as running:
        yield running


@pytest.fixture
def upstream(backend: Upstream) -> Upstream:
    backend.requests.clear()
    return backend


@pytest.fixture
def opened(tmp_path: Path, upstream: Upstream) -> Opened:
    """A gate with the tools of a file: its text, its name, settings."""

    @asynccontextmanager
    async def open_(
        text: str, name: str = "tools.yaml", **settings: Any
    ) -> AsyncGenerator[Kit, None]:
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        flags = {"extend__tools": file, "extend__base_url": upstream.url, **settings}
        async with opened_kit(tmp_path / "data", **flags) as kit:
            yield kit

    return open_

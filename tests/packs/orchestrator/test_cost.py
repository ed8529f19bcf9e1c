"""What a governed look-up of a preference costs, beside that of a document; counted, not timed."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.packs.orchestrator.calls import WEBSITE
from tests.statements import noted_statements
from tests.transports.conftest import Web, opened_web, remembered
from tests.transports.mcp_requests import MODERN, tool_call
from tests.transports.test_cost import asking, frames, nothing_beside

__all__ = ["nothing_beside", "remembered"]

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("remembered")]


@pytest.fixture(scope="module")
async def web(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Web]:
    folder = tmp_path_factory.mktemp("cost")
    enabled = ["appdata", "backend", "orchestrator"]
    async with opened_web(folder, packs__enabled=enabled) as opened:
        yield opened


async def cost_of(web: Web, tool: str, **arguments: Any) -> tuple[int, int]:
    """The functions and the statements of a call."""
    ask = await asking(web, tool_call(MODERN, tool, arguments))
    entered = await frames(ask)
    with noted_statements() as statements:
        await ask()
    return entered.total(), len(statements)


@pytest.mark.parametrize(
    "place",
    [{"scope_type": "system", "key": "language.preferred"},
     {"scope_type": "user", "scope_id": "alice", "key": "output.summary_style"},
     {"scope_type": "project", "scope_id": WEBSITE, "key": "standards.markdown.line_length"}],
    ids=["system", "user", "project"],
)  # fmt: skip
async def test_a_preference_costs_at_most_twice_what_a_document_does(
    web: Web, place: dict[str, str]
) -> None:
    document, one = await cost_of(web, "get_document", collection="users", document_id="jane")
    preference, few = await cost_of(web, "db.preference.get", **place)
    assert preference <= 2 * document
    assert one == 1
    assert few <= 2  # whether the caller reaches the scope, and the preference

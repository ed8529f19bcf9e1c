"""Models send null for what they leave out."""

import pytest
from tests.packs.content.seed_calls import MINIMAL

from toolgate.testing import Kit

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("tool", MINIMAL)
async def test_an_optional_argument_that_is_null_was_not_given(kit: Kit, tool: str) -> None:
    found = kit.app.gate.catalogue.find(tool)
    assert found is not None
    optional = found.input_schema["properties"].keys() - MINIMAL[tool].keys()
    nulls = dict.fromkeys(optional)
    plain = await kit.send(tool, MINIMAL[tool])
    assert (await kit.send(tool, MINIMAL[tool] | nulls)).body == plain.body
    for name in MINIMAL[tool]:
        assert (await kit.send(tool, MINIMAL[tool] | {name: None})).status == 400

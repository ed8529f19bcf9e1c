"""A document with more values than the index holds is refused in words, and not stored."""

from pathlib import Path

import pytest

from toolgate.adapters.sql.documents.index import MAX_ENTRIES
from toolgate.testing import opened_kit

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("dry_run", [False, True])
async def test_too_many_values_are_refused(tmp_path: Path, dry_run: bool) -> None:
    async with opened_kit(tmp_path, writes=True) as kit:
        refused = await kit.call(
            "create_document",
            dry_run=dry_run,
            collection="apps",
            document_id="large",
            data={"numbers": list(range(MAX_ENTRIES))},
        )
        assert refused.status == 400
        assert refused.body["error"].startswith("A document may have at most 40,000 indexed values")
        assert "database.unindexed" in refused.body["error"]
        absent = await kit.call("get_document", collection="apps", document_id="large")
        assert absent.status == 404
        rows = await kit.audit_rows()
        assert rows[0]["error_type"] == "invalid_arguments"

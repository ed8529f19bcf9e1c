"""After a kill there is no row without its blob and, after the reaper, no blob without its row."""

from pathlib import Path

import pytest
from tests.packs.orchestrator.artifact_kills import check_kill


@pytest.mark.timeout(600)
@pytest.mark.parametrize("acknowledged", [1, 15])
def test_a_kill_leaves_no_row_without_a_blob_and_the_reaper_no_blob_without_a_row(
    tmp_path: Path, acknowledged: int
) -> None:
    print(check_kill(tmp_path / "data", acknowledged))

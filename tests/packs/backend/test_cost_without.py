"""Who does not enable the pack pays nothing: counted, against a tree without such a pack."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.needed_packs import needs_pack
from tests.patience import PATIENT
from tests.servers import ROOT

pytestmark = [needs_pack("appdata"), pytest.mark.timeout(300)]

COUNT = """
import json, sys
from pathlib import Path
import anyio
from toolgate.testing import opened_kit

async def main():
    async with opened_kit(Path(sys.argv[1]), packs__enabled=["appdata"]) as kit:
        started = sorted(name for name in sys.modules if name.startswith("toolgate"))
        others = sorted({name.partition(".")[0] for name in sys.modules} - {"toolgate"})
        counts = []
        for _ in range(7):
            events = [0]
            def count(frame, event, arg):
                events[0] += event in ("call", "c_call")
            sys.setprofile(count)
            outcome = await kit.call("list_collections")
            sys.setprofile(None)
            assert outcome.status == 200, outcome.body
            counts.append(events[0])
        print(json.dumps({
            "modules": started,
            "others": others,
            "calls": min(counts),
            "work": len(kit.app.site_of("appdata").workflows.runs.declared),
        }))

anyio.run(main)
"""

LOAD = """
import json, sys
from pathlib import Path
import anyio
from toolgate.testing import opened_kit

async def main():
    async with opened_kit(Path(sys.argv[1]), packs__enabled=["backend"]) as kit:
        assert (await kit.call("health_check")).status == 200
        print(json.dumps({"others": sorted({name.partition(".")[0] for name in sys.modules})}))

anyio.run(main)
"""
LATER = {
    "PIL": "images of posts",
    "aiosmtplib": "mail over SMTP",
    "dulwich": "posts",
    "google": "Firebase",
    "httpx2": "what calls out",
    "jinja2": "mails",
    "re2": "patterns of queries",
    "slugify": "posts",
    "stripe": "payments by Stripe",
    "yaml": "posts",
}


def started(source: Path, script: str, data: Path) -> dict[str, Any]:
    """What a script tells of a start, with the modules of this folder."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(data),
        "PYTHONPATH": str(source),
        "PYTHONHASHSEED": "0",
    }
    done = subprocess.run(
        [sys.executable, "-c", script, str(data)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=PATIENT,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def counted(source: Path, data: Path) -> dict[str, Any]:
    """What the second start loads and a call does; the first makes the database."""
    started(source, COUNT, data)
    return started(source, COUNT, data)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """The tree as it is, and one without the pack's folder; in both it is not enabled."""
    folder = tmp_path_factory.mktemp("cost")
    shutil.copytree(ROOT / "src", folder / "without")
    shutil.rmtree(folder / "without/toolgate/packs/backend")
    loader = folder / "without/toolgate/packs/__init__.py"
    text = loader.read_text()
    loader.write_text(text.replace('"backend", ', ""))
    assert loader.read_text() != text
    for name in ("a", "b"):
        (folder / name).mkdir()
    return counted(ROOT / "src", folder / "a"), counted(folder / "without", folder / "b")


def test_not_a_module_more_is_loaded(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    with_it, without = both
    assert with_it["modules"] == without["modules"]
    assert with_it["others"] == without["others"]
    assert not [one for one in with_it["modules"] if ".packs.backend" in one]
    assert "toolgate.workflows.worker" not in with_it["modules"]


def test_a_call_of_another_pack_calls_no_function_more(
    both: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    with_it, without = both
    assert with_it["calls"] == without["calls"]
    assert with_it["calls"] > 50, "something was counted"


def test_no_background_work_is_looked_for(both: tuple[dict[str, Any], dict[str, Any]]) -> None:
    assert [one["work"] for one in both] == [0, 0]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What is loaded by the second start with the pack."""
    data = tmp_path_factory.mktemp("loaded")
    started(ROOT / "src", LOAD, data)
    return started(ROOT / "src", LOAD, data)["others"]


@pytest.mark.parametrize("library", LATER)
def test_with_the_pack_a_library_comes_with_its_first_use(loaded: list[str], library: str) -> None:
    assert library not in loaded, f"{library} is for {LATER[library]}"

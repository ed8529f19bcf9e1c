"""Run one requirement set of the public conformance suite against a server, and read what it said.

cd tests && python -m conformance.suite http://127.0.0.1:8123/mcp
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import node

REQUIREMENTS = {"2026-07-28": 37, "2025-11-25": 30}
"""Revision of the protocol, and how many server scenarios it requires: frozen by the suite."""

_ENTRY = Path("node_modules/@modelcontextprotocol/conformance/dist/index.js")
_SUMMARY = re.compile(r"^([✓✗]) (\S+): (\d+) passed, (\d+) failed$", re.MULTILINE)
_NOT_SCORED = re.compile(r"^  [✓✗] (\S+) \([a-z-]+\)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Report:
    requirements: str
    passed: int
    total: int
    failed_names: tuple[str, ...]
    unscored_failed: tuple[str, ...]
    problems: tuple[str, ...]
    """Every failed or warned check of a required scenario: `scenario: status check-id: message`."""
    raw_output: str

    def __str__(self) -> str:
        lines = [
            f"{self.requirements}: {self.passed}/{self.total} required scenarios",
            *self.problems,
        ]
        if self.unscored_failed:
            lines.append(f"not scored, failing: {', '.join(self.unscored_failed)}")
        return "\n  ".join(lines)


def run_suite(url: str, requirements: str) -> Report:
    """Raises `NodeUnavailable` when the suite itself cannot be run here."""
    home = node.install(Path(__file__).parent)
    with tempfile.TemporaryDirectory() as results:
        arguments = (
            "server",
            "--url",
            url,
            "--requirements",
            requirements,
            "--output-dir",
            results,
        )
        done = node.find().run(str(home / _ENTRY), *arguments, cwd=home, timeout=300)
        output = done.stdout + done.stderr
        unscored = set(_NOT_SCORED.findall(output))
        verdicts = {name: mark == "✓" for mark, name, _, _ in _SUMMARY.findall(output)}
        problems = tuple(_problems(Path(results), verdicts.keys() - unscored))
    required = [name for name in verdicts if name not in unscored]
    failed = tuple(name for name in required if not verdicts[name])
    return Report(
        requirements=requirements,
        passed=len(required) - len(failed),
        total=len(required),
        failed_names=failed,
        unscored_failed=tuple(name for name in verdicts if name in unscored and not verdicts[name]),
        problems=problems,
        raw_output=output,
    )


def _problems(results: Path, scenarios: set[str]) -> Iterator[str]:
    for path in sorted(results.glob("server-*/checks.json")):
        # The folder is `server-<scenario>-<time>`; the longest scenario that fits is the one.
        folder = path.parent.name.removeprefix("server-")
        scenario = max(
            (name for name in scenarios if folder.startswith(f"{name}-")), key=len, default=None
        )
        checks: list[dict[str, Any]] = json.loads(path.read_text())
        for check in checks:
            if scenario is not None and check["status"] in ("FAILURE", "WARNING"):
                message = check.get("errorMessage", "")
                yield f"{scenario}: {check['status']} {check['id']}: {message}"


if __name__ == "__main__":
    reports = [run_suite(sys.argv[1], revision) for revision in REQUIREMENTS]
    print(*reports, sep="\n")
    sys.exit(any(report.passed != REQUIREMENTS[report.requirements] for report in reports))

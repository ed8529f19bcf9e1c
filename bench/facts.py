"""What a figure depends on: the machine, and the versions that ran."""

import os
import platform
import re
import sqlite3
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import orjson

from bench.installing import LOCKS
from bench.servers import CORES

OURS = ("toolgate", "mcp", "uvicorn", "uvloop", "httptools", "orjson", "psycopg", "asyncpg")


def facts(command: str = "make bench") -> dict[str, str]:
    """For the head of the table."""
    load = ", ".join(f"{one:.1f}" for one in os.getloadavg())
    return {
        "Date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "Command": f"`{command}`",
        "CPU": f"{_cpu()}, {len(CORES)} cores used of {os.cpu_count()}",
        "Load before": f"{load} (1, 5 and 15 minutes)",
        "System": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "Versions": ", ".join(f"{name} {version(name)}" for name in OURS),
        "SQLite": sqlite3.sqlite_version,
        "Peers": f"FastMCP {_fastmcp()}, Toolbox {_toolbox()}",
    }


def _cpu() -> str:
    named = re.search(r"^model name\s*:\s*(.+)$", _read("/proc/cpuinfo"), re.MULTILINE)
    return named[1] if named else platform.processor() or platform.machine()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def _fastmcp() -> str:
    pinned = re.search(r"^fastmcp==(\S+)", (LOCKS / "requirements.txt").read_text(), re.MULTILINE)
    return pinned[1] if pinned else "?"


def _toolbox() -> str:
    wanted = orjson.loads((LOCKS / "package.json").read_bytes())["dependencies"]
    return next(iter(wanted.values()))

"""Processes as Linux tells of them."""

from pathlib import Path

PROC = Path("/proc")


def everybody() -> list[int]:
    """All processes of the machine."""
    return [int(one.name) for one in PROC.glob("[0-9]*")]


def children_of(pid: int) -> list[int]:
    """The processes that one has started and that have not ended."""
    return [one for one in everybody() if _status(one)[1:2] == [str(pid)] and not is_gone(one)]


def command_of(pid: int) -> str:
    """How a process was started; empty when it has ended."""
    return _read(pid, "cmdline")


def environment_of(pid: int) -> str:
    """The environment it was started with; empty when it has ended."""
    return _read(pid, "environ")


def is_gone(pid: int) -> bool:
    """Whether a process has ended, though somebody may still have to ask how."""
    return _status(pid)[:1] in ([], ["Z"])


def _status(pid: int) -> list[str]:
    """The state of a process, the number of its parent, and so on; nothing when it has ended."""
    return _read(pid, "stat").rpartition(")")[2].split()


def _read(pid: int, name: str) -> str:
    try:
        return (PROC / str(pid) / name).read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""

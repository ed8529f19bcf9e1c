"""What every test shares."""

import logging
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from tests.databases import (
    database_url,
    migrations_once,
    postgres_database,
    postgres_room,
    postgres_server,
    prepared_tables,
    room,
)
from tests.patience import DEADLINES, IN_PROCESS, OF_CLIENTS, hold_the_minute, lengthen
from tests.seaweedfs import s3_server
from tests.servers import server
from tests.trust import read_trust_once

from toolgate.gate import policy
from toolgate.gate.rule_schema import Vocabulary
from toolgate.gate.rules import Rule

__all__ = [
    "anyio_backend",
    "database_url",
    "migrations_once",
    "postgres_database",
    "postgres_room",
    "postgres_server",
    "prepared_tables",
    "room",
    "s3_server",
    "server",
]

# Hundreds of processes are started here: none may have to compile the same modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# How long an example takes depends on the machine, so it is never a reason to fail.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
lengthen(DEADLINES | OF_CLIENTS | IN_PROCESS)
hold_the_minute()
read_trust_once()


IN_MEMORY = Path("/dev/shm")
FREE_BYTES = 4 * 1024**3
"""As much as temporary files may take, several times over."""


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    """Keep temporary files in memory where there is room: thousands of databases are made here.

    And heed SIGINT, which a shell lets its background jobs ignore, and so all that they start.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free > FREE_BYTES:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(IN_MEMORY))
        os.environ.setdefault("TMPDIR", str(IN_MEMORY))
        tempfile.tempdir = None  # to be found again


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """One event loop: the one the server runs on."""
    return "asyncio"


@pytest.fixture(autouse=True)
def _log_as_it_was() -> None:
    """Servers and commands that ran in this process before have set up the log for themselves."""
    root = logging.getLogger()
    root.setLevel(logging.WARNING)
    for handler in [one for one in root.handlers if type(one) is logging.StreamHandler]:
        root.removeHandler(handler)  # whose stream ended with its test
    for name in ("toolgate", "uvicorn", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.NOTSET)
        logger.propagate, logger.disabled = True, False


@pytest.fixture(scope="session", autouse=True)
def _rules_checked_once() -> Iterator[None]:
    """The same rules are checked once: a gate for a test would spend half of its start on it."""
    check, passed = policy.check, set[tuple[Any, ...]]()

    def check_once(rules: Sequence[Rule], words: Vocabulary) -> None:
        checked = (*rules, words.schema(), repr(words.values))
        if checked not in passed:
            check(rules, words)
            passed.add(checked)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "check", check_once)
        yield


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Names for cases with bytes: those made anew in each process would be other cases there."""
    return argname if isinstance(val, bytes) else None


LONGEST = (
    "test_removal.py",
    "test_docs.py",
    "test_other_clients.py",
    "test_load.py",
    "test_two_workers.py",
)
"""Files that take longest; begun last, one of them would keep a single worker busy at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that take longest (with `--no-loadscope-reorder`)."""
    items.sort(key=lambda item: item.path.name not in LONGEST)

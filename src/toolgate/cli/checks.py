"""Checks of the machine: settings file, folder, port, packages, clock."""

import shutil
import socket
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from toolgate.cli.problems import explain
from toolgate.cli.serve import url_of
from toolgate.cli.tools import every_tool

if TYPE_CHECKING:
    from toolgate.cli.running_server import RunningServer
    from toolgate.settings import Settings


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One line of the report."""

    name: str
    state: State
    message: str


LITTLE_SPACE = 1024**3
NO_SPACE = 100 * 1024**2
MAX_AHEAD_SECONDS = 60
OLDEST_CLOCK = datetime(2026, 1, 1, tzinfo=UTC)
EXTRAS = {"postgres": "psycopg", "firestore": "google.cloud.firestore", "redis": "redis"}


def failed_check(name: str, error: Exception) -> CheckResult:
    """A failure in the words of the command line."""
    explanation = explain(error)
    return CheckResult(
        name, State.FAIL, explanation[0] if explanation else f"{type(error).__name__}: {error}"
    )


def check_file(config: Path | None) -> CheckResult:
    """The settings were read, from where."""
    from toolgate.settings import FILE_NAME

    path = config or Path(FILE_NAME)
    if not path.is_file():
        message = f"There is no {path} here, so defaults and the environment apply."
        return CheckResult("settings", State.OK, f"{message} `toolgate init` writes one.")
    return CheckResult("settings", State.OK, f"{path} is valid.")


def check_data(settings: "Settings", server: "RunningServer | None" = None) -> CheckResult:
    """The data folder can be written, and has room."""
    folder = settings.data
    there = next(one for one in (folder, *folder.absolute().parents) if one.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            free = shutil.disk_usage(there).free
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        step = "Make it a folder you can write to, or name another with --data."
        return CheckResult("data folder", State.FAIL, f"{there}: {why}. {step}")
    room = f"{free / 1024**3:.1f} GiB free"
    if free < LITTLE_SPACE:
        state = State.FAIL if free < NO_SPACE else State.WARN
        return CheckResult("data folder", state, f"{folder}: only {room}. Make room on the disk.")
    if not folder.exists():
        what = "is not there" if server else "will be created at the first start"
        return CheckResult("data folder", State.OK, f"{folder} {what}; {room}.")
    return CheckResult("data folder", State.OK, f"{folder} is writable; {room}.")


async def check_modes(settings: "Settings", config: Path | None) -> CheckResult:
    """Nobody else on this machine can read the data or the keys."""
    from toolgate.data_folder import embedded_file, readable_by_others
    from toolgate.db.engine import Database
    from toolgate.settings import files_with_secrets

    if readable := [
        one for one in files_with_secrets(type(settings), config) if _readable_by_others(one)
    ]:
        message = f"{', '.join(map(str, readable))} holds a secret and can be read by others."
        return CheckResult("file modes", State.FAIL, f"{message} Run `chmod 600 {readable[0]}`.")
    try:
        database = Database(settings.database_url)
        file = embedded_file(database)
        await database.close()
    except Exception:
        file = None  # the check of the database says what is wrong with its address
    if paths := readable_by_others(settings.data, file):
        modes = f"chmod {'700' if paths[0].is_dir() else '600'} {paths[0]}"
        message = f"{', '.join(map(str, paths))} can be read by others on this machine."
        return CheckResult(
            "file modes", State.FAIL, f"{message} Run `{modes}`, or start the server again."
        )
    return CheckResult("file modes", State.OK, "only their owner can read data and keys.")


def check_port(settings: "Settings", server: "RunningServer | None") -> CheckResult:
    """The port is free, or a toolgate answers there and is ready."""
    from toolgate.http_server import listen

    if server is not None:
        return _check_ready(server)
    url = url_of(settings.server)
    try:
        listen(settings).close()
    except PermissionError:
        message = f"Port {settings.server.port} needs more privileges. Choose one above 1023."
        return CheckResult("port", State.FAIL, message)
    except socket.gaierror:
        message = f"This machine has no address {settings.server.host!r}. Change server.host."
        return CheckResult("port", State.FAIL, message)
    except OSError:
        message = f"{url} is taken by another program. Choose another with --port."
        return CheckResult("port", State.WARN, message)
    return CheckResult("port", State.OK, f"{url} is free.")


def _check_ready(server: "RunningServer") -> CheckResult:
    if not server.failing:
        return CheckResult("port", State.OK, f"A toolgate answers at {server.url}.")
    message = f"A toolgate answers at {server.url}, but is not ready: {', '.join(server.failing)}."
    step = "Its log says why."
    if server.has_lost_database:
        step += " If the database's file was deleted or replaced, restart the server."
    return CheckResult("port", State.FAIL, f"{message} {step}")


def check_certificate(settings: "Settings", now: datetime) -> CheckResult:
    """The certificate is in its time, for the right names, and its key is private."""
    from toolgate.certificates import examine, files_in, names_for

    server = settings.server
    problems, end = examine(settings.data, names_for(server.host, server.allowed_hosts), now)
    files = files_in(settings.data)
    if end is None:
        return CheckResult(
            "certificate", State.OK, f"{files.certificate} will be created at the next start."
        )
    if readable := [one for one in (files.key, files.ca_key) if _readable_by_others(one)]:
        message = f"{readable[0]} can be read by others. Run `chmod 600 {readable[0]}`."
        return CheckResult("certificate", State.FAIL, message)
    if problems:
        state = State.FAIL if end <= now else State.WARN
        message = (
            f"{files.certificate}: {'; '.join(problems)}. Restart the server to create a new one."
        )
        return CheckResult("certificate", state, message)
    names = ", ".join(names_for(server.host, server.allowed_hosts))
    return CheckResult("certificate", State.OK, f"Valid until {end:%Y-%m-%d}, for {names}.")


def _readable_by_others(file: Path) -> bool:
    return sys.platform != "win32" and file.exists() and bool(file.stat().st_mode & 0o077)


def check_extras(settings: "Settings") -> CheckResult:
    """The packages that the settings ask for are installed."""
    from toolgate.document_stores import uses_firestore

    needed = {
        "postgres": settings.database_url.startswith("postgres"),
        "firestore": uses_firestore(settings),
        "redis": "redis" in settings.limits.store,
    }
    there = {name for name, module in EXTRAS.items() if _is_installed(module)}
    missing = [name for name, is_needed in needed.items() if is_needed and name not in there]
    if missing:
        message = f"The settings need {', '.join(missing)}."
        return CheckResult(
            "extras", State.FAIL, f"{message} Install toolgate[{','.join(missing)}]."
        )
    states = [f"{name} {'installed' if name in there else 'not installed'}" for name in EXTRAS]
    return CheckResult("extras", State.OK, f"{', '.join(states)}.")


def check_own_tools(settings: "Settings") -> CheckResult:
    """The files of the user's own tools are as they should be."""
    files = settings.extend.tools
    if not files:
        return CheckResult("own tools", State.OK, "none (setting extend.tools).")
    try:
        catalogue, many = every_tool(settings)
    except Exception as error:
        result = failed_check("own tools", error)
        return CheckResult(result.name, result.state, " ".join(result.message.split()))
    replaced = ", ".join(catalogue.replaced)
    instead = f", in place of the built-in {replaced}" if replaced else ""
    count = "1 tool" if many == 1 else f"{many} tools"
    return CheckResult("own tools", State.OK, f"{', '.join(map(str, files))}: {count}{instead}.")


def check_rules(settings: "Settings") -> CheckResult:
    """Every rule names what there is, and none fails for any sort of caller and any tool."""
    from toolgate.app import offers_of
    from toolgate.gate.catalogue import Catalogue
    from toolgate.gate.principal import ANONYMOUS, AgentType, Role, of_agent, of_node, of_role
    from toolgate.tool_settings import RuleWarnings, policy_of

    callers = [ANONYMOUS, *(of_role(role, "doctor") for role in Role)]
    callers += [*(of_agent(type_, "doctor") for type_ in AgentType), of_node("x", "doctor")]
    try:
        catalogue, _ = every_tool(settings)
    except Exception:
        # The check of one's own tools says what is wrong; rules may name them all the same.
        catalogue = Catalogue(offers_of(settings), changing=True)
    try:
        policy = policy_of(settings, catalogue)
    except Exception as error:
        return failed_check("rules", error)
    for principal in callers:
        policy.visible(principal, catalogue)
    if failures := list(policy.failures):
        message = f"{failures[0]}. Until it is corrected, tools are hidden from everybody."
        return CheckResult("rules", State.FAIL, message)
    if odd := RuleWarnings(settings, catalogue).sentences():
        return CheckResult("rules", State.WARN, " ".join(odd))
    bringing = [f"of pack {one.pack.name}" for one in catalogue.offers if one.rules]
    own = [f"{_own_rules(folder)} in {folder}"] if (folder := settings.policy.folder) else []
    return CheckResult("rules", State.OK, f"valid: {', '.join(['built-in', *bringing, *own])}.")


def _own_rules(folder: Path) -> str:
    from toolgate.gate.rules import rules_in, rules_of

    many = len(rules_of(rules_in(folder)))
    return "1 rule" if many == 1 else f"{many} rules"


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def check_clock(newest: str | None, now: datetime) -> CheckResult:
    """The clock is not behind what was already written."""
    if now < OLDEST_CLOCK:
        return CheckResult(
            "clock", State.FAIL, f"The clock says {now:%Y-%m-%d}. Set the system time."
        )
    ahead = (datetime.fromisoformat(newest) - now).total_seconds() if newest else 0
    if ahead > MAX_AHEAD_SECONDS:
        message = f"The newest audit row is {ahead:.0f} s in the future."
        return CheckResult("clock", State.FAIL, f"{message} Set the system time.")
    return CheckResult("clock", State.OK, f"{now:%Y-%m-%d %H:%M:%S} UTC.")
